"""Images that start from a SIF of this machine: which one it is decides what is cached."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.conftest import sifwright
from tests.system.apptainer.trials import states

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.apptainer.toys import Toy

pytestmark = pytest.mark.build


def _start_from(toy: Toy, sif: Path) -> None:
    header = json.loads((toy.folder / "defs/layers/base-local/layer.yaml").read_text())
    header["bootstrap"]["From"] = str(sif)
    toy.layer("base-local", "true\n", header=header)


def test_another_base_is_another_image(
    engine: str, tiny: Toy, tiny_base: Path, tmp_path: Path
) -> None:
    """Notice another base under the same name, too."""
    base = tmp_path / "base.sif"
    base.write_bytes(tiny_base.read_bytes())
    _start_from(tiny, base)
    assert tiny.build().returncode == 0
    assert tiny.build().stdout.startswith("up to date")
    tiny.layer("old", "echo 1 >/of-the-base\n")
    tiny.image("old")
    assert tiny.build("--layout", "flat").returncode == 0
    base.unlink()
    base.write_bytes(tiny.sif.read_bytes())
    tiny.layer("one", "mkdir -p /data/a; echo 2 >/data/y; ln -f /data/y /data/z\n")
    tiny.layer("two", "echo 3 >/data/c\n")
    tiny.image("one", "two")
    assert states(tiny.build("--json"))["base-local"] == "done"
    output = tiny.execute(engine, "cat", "/of-the-base", "/data/z", "/data/c")
    assert output.split() == ["1", "2", "3"]


def test_a_layered_base_is_refused_until_it_is_flattened(
    engine: str, tiny: Toy, tmp_path: Path
) -> None:
    """Refuse it: `apptainer build` would take its first partition without a word."""
    tiny.layer("one", "mkdir /data; echo 1 >/data/a; echo 2 >/data/b\n")
    tiny.layer("two", "rm /data/a; echo 3 >/data/c\n")
    tiny.image("one", "two")
    assert tiny.build("--layout", "layered").returncode == 0
    layered, flat = tmp_path / "layered.sif", tmp_path / "flat.sif"
    layered.write_bytes(tiny.sif.read_bytes())
    _start_from(tiny, layered)
    tiny.layer("three", "echo 4 >/four\n")
    tiny.image("three")
    for command in (["build"], ["shell", "--before", "three"], ["check"]):
        done = sifwright(*tiny.words(*command))
        assert done.returncode == 5, done.stdout + done.stderr
        assert f"{layered}: layer 'base-local' starts from it" in done.stderr
        assert "would take the first of its 4 partitions only" in done.stderr
        assert f"sifwright flatten {layered} NEW.sif" in done.stderr
    assert sifwright("flatten", layered, flat).returncode == 0
    _start_from(tiny, flat)
    done = tiny.build()
    assert done.returncode == 0, done.stderr
    output = tiny.execute(engine, "cat", "/data/b", "/data/c", "/four")
    assert output.split() == ["2", "3", "4"]
    assert "a" not in tiny.execute(engine, "ls", "/data").split()
