"""The definition file is the canonical document: built by hand it gives the same image."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sifwright.make_image.resolve_request import host_settings
from tests.conftest import run
from tests.system.apptainer.trees import differences, unpack

if TYPE_CHECKING:
    from pathlib import Path


def _build_by_hand(engine: str, folder: Path, definition: str, sif: Path) -> None:
    """Build as the first lines of the definition file say, with the settings of this machine."""
    settings = sif.parent / "settings"
    settings.mkdir()
    prepared = host_settings.prepare(settings)
    binds = [word for bind in prepared.definition_binds for word in ("--bind", bind)]
    env = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin", **prepared.env}
    # The tree is compared: this compression takes a third of the time.
    fast = ["--mksquashfs-args", "-comp zstd -Xcompression-level 1"]
    command = [engine, "build", "--fakeroot", *fast, *binds, sif, definition]
    done = run(command, env=env, timeout=1800, cwd=folder)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.slow  # a toy is built by hand in test_cases
@pytest.mark.image
@pytest.mark.build
@pytest.mark.parametrize("form", ["folder", "single-file"])
def test_the_same_packages_and_files(engine: str, image: Path, tmp_path: Path, form: str) -> None:
    by_hand, folder = tmp_path / "by-hand.sif", image.parent / "recipe"
    if form == "single-file":
        folder = tmp_path
        shown = run([engine, "sif", "dump", "1", image]).stdout
        (folder / "pytorch.def").write_text(shown)
    _build_by_hand(engine, folder, "pytorch.def", by_hand)
    packages = ["dpkg-query --show", "pip freeze --all"]
    for command in packages:
        inside = ["--containall", "--no-home"]
        ours, expected = (
            run([engine, "--quiet", "exec", *inside, sif, *command.split()]).stdout
            for sif in (image, by_hand)
        )
        assert ours == expected
        assert ours
    # The image keeps the definition file that it was built from.
    texts = [".singularity.d/Singularity"] if form == "folder" else []
    trees = (unpack(engine, image, tmp_path), unpack(engine, by_hand, tmp_path))
    assert differences(*trees) == texts


def test_a_different_file_is_noticed(tmp_path: Path) -> None:
    """Prove that the comparison can fail: on a file's bytes, its mode, its absence."""
    scripts = {"one": "echo 1 >a; touch b c d", "other": "echo 2 >a; touch b d; chmod 600 b"}
    for name, script in scripts.items():
        (tmp_path / name).mkdir()
        assert run(["bash", "-euc", script], cwd=tmp_path / name).returncode == 0
    assert set(differences(tmp_path / "one", tmp_path / "other")) == {"a", "b", "c"}
