"""Images that start from a SIF of this machine: which one it is decides what is cached."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.conftest import sifwright
from tests.system.apptainer.toys import Toy, succeeded
from tests.system.apptainer.trials import states

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.build


def test_another_base_under_the_same_name(engine: str, tiny: Toy, tiny_base: Path) -> None:
    """Refuse a layered one: `apptainer build` would take its first partition without a word."""
    base, flat = tiny.folder / "base.sif", tiny.folder / "flat.sif"
    base.write_bytes(tiny_base.read_bytes())
    header = json.loads((tiny.folder / "defs/layers/base-local/layer.yaml").read_text())
    header["bootstrap"]["From"] = str(base)
    tiny.layer("base-local", "true\n", header=header)
    tiny.layer("one", "mkdir /data; echo 1 >/data/a; echo 2 >/data/b\n")
    tiny.layer("two", "rm /data/a; echo 3 >/data/c\n")
    tiny.image("one", "two")
    succeeded(tiny.build("--layout", "layered"))
    assert tiny.build("--layout", "layered").stdout.startswith("up to date")
    base.unlink()
    base.write_bytes(tiny.sif.read_bytes())
    tiny.layer("three", "echo 4 >/four\n")
    tiny.image("three")
    for command in (["build"], ["shell", "--before", "three"], ["check"]):
        done = sifwright(*tiny.words(*command))
        assert done.returncode == 5, done.stdout + done.stderr
        assert f"{base}: layer 'base-local' starts from it" in done.stderr
        assert "would take the first of its 4 partitions only" in done.stderr
        assert f"sifwright flatten {base} NEW.sif" in done.stderr
    succeeded(sifwright("flatten", base, flat))
    flat.replace(base)
    assert states(succeeded(tiny.build("--json")))["base-local"] == "done"
    output = tiny.execute(engine, "cat", "/data/b", "/data/c", "/four")
    assert output.split() == ["2", "3", "4"]
    assert "a" not in tiny.execute(engine, "ls", "/data").split()
