"""The definition file is the canonical document: built by hand it gives the same image."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sifwright.host.network import pip_settings
from tests.conftest import run
from tests.system.apptainer.trees import differences, unpack

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.apptainer.toys import Toy


def _build_by_hand(engine: str, definition: Path, sif: Path) -> None:
    """What the first lines of the definition file say, with pip's settings in the environment."""
    pip = pip_settings.environment(pip_settings.settings())
    env = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin", **pip}
    # What is compared is the tree: packed in a third of the time.
    fast = ["--mksquashfs-args", "-comp zstd -Xcompression-level 1"]
    done = run([engine, "build", "--fakeroot", *fast, sif, definition], env=env, timeout=1800)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.nightly
@pytest.mark.image
@pytest.mark.build
def test_the_same_packages_and_files(engine: str, image: Path, tmp_path: Path) -> None:
    by_hand = tmp_path / "by-hand.sif"
    _build_by_hand(engine, image.parent / "pytorch.def", by_hand)
    packages = ["dpkg-query --show", "pip freeze --all"]
    for command in packages:
        inside = ["--containall", "--no-home"]
        ours, theirs = (
            run([engine, "--quiet", "exec", *inside, sif, *command.split()]).stdout
            for sif in (image, by_hand)
        )
        assert ours == theirs
        assert ours
    assert differences(unpack(engine, image, tmp_path), unpack(engine, by_hand, tmp_path)) == []


def test_a_different_file_is_noticed(engine: str, toy: Toy, tmp_path: Path) -> None:
    """The comparison itself can fail: on a file's bytes, on its mode, on its absence."""
    trees = []
    for number, script in enumerate(
        ("echo 1 >/a; touch /b; touch /c\n", "echo 2 >/a; touch /b; chmod 600 /b\n")
    ):
        toy.layer("files", script)
        toy.image("files")
        assert toy.build("--quiet").returncode == 0
        folder = tmp_path / str(number)
        folder.mkdir()
        trees.append(unpack(engine, toy.sif, folder))
    found = set(differences(*trees))
    assert {"a", "b", "c"} <= found
    assert found - {"a", "b", "c"} == {"opt/sifwright/plan.json", ".singularity.d/Singularity"}
