"""Images that start from a SIF of this machine: which one it is decides what is cached."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.make_image.cache.store import Store
from tests.conftest import sifwright
from tests.system.apptainer.trials import states

if TYPE_CHECKING:
    from tests.system.apptainer.toys import Toy

pytestmark = pytest.mark.build


def _start_from(toy: Toy, sif: Path) -> None:
    header = json.loads((toy.folder / "defs/layers/base-local/layer.yaml").read_text())
    header["bootstrap"]["From"] = str(sif)
    toy.layer("base-local", "true\n", header=header)


@pytest.fixture
def base(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the base image of the toy, and use the copy as its base."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    header = json.loads((toy.folder / "defs/layers/base-local/layer.yaml").read_text())
    copy = tmp_path / "base.sif"
    copy.write_bytes(Path(header["bootstrap"]["From"]).read_bytes())
    _start_from(toy, copy)
    return copy


@pytest.mark.all
def test_a_base_that_changes_while_it_is_read_is_not_kept(
    engine: str, toy: Toy, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep no result: its key would be of another base."""
    wrapper = tmp_path / "bin" / "apptainer"
    wrapper.parent.mkdir()
    real = shutil.which(engine)
    script = f'#!/bin/sh\ncase "$*" in *build*) echo >>{base};; esac\nexec {real} "$@"\n'
    wrapper.write_text(script)
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    done = toy.build()
    assert (done.returncode, Store.open().all_keys()) == (6, [])
    assert f"{base}: was changed while the image was built from it" in done.stderr
    wrapper.unlink()
    assert states(toy.build("--json"))["base-local"] == "done"


def test_another_base_is_another_image(engine: str, toy: Toy, base: Path) -> None:
    """Notice another base under the same name, too."""
    assert toy.build().returncode == 0
    assert toy.build().stdout.startswith("up to date")
    toy.layer("old", "echo 1 >/of-the-base\n")
    toy.image("old")
    assert toy.build("--layout", "flat").returncode == 0
    base.unlink()
    base.write_bytes(toy.sif.read_bytes())
    toy.layer("one", "mkdir -p /data/a; echo 2 >/data/y; ln -f /data/y /data/z\n")
    toy.layer("two", "echo 3 >/data/c\n")
    toy.image("one", "two")
    assert states(toy.build("--json"))["base-local"] == "done"
    output = toy.execute(engine, "cat", "/of-the-base", "/data/z", "/data/c")
    assert output.split() == ["1", "2", "3"]


@pytest.mark.all
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
    options = ["--project", tiny.folder, "--output", tiny.folder / "build"]
    commands = (
        tiny.command(),
        ["shell", "local", "toy", "--before", "three"],
        ["check", "local", "toy"],
    )
    for words in commands:
        done = sifwright(
            *(words if words[0] == "--project" else [*options[:2], *words, *options[2:]])
        )
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
