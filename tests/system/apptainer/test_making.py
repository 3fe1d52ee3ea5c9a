"""Squashfs files made in memory, against those of mksquashfs."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from sifwright.build.layers.pack import squash_command
from sifwright.build.steps import build_folder
from sifwright.catalog.model import LayerFile
from sifwright.images.sif.copy_data import Range
from sifwright.images.squashfs.join_layers import compression
from sifwright.images.squashfs.make_squashfs import squashfs_of
from tests.conftest import run
from tests.system.apptainer.squashed import described, loop, packed
from tests.system.apptainer.steps import write_joined

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts")

_MODES = {"": 0o751, "opt": 0o2775, "opt/a/b": 0o700}
_CHANCE = random.Random(1)  # noqa: S311
FILES = [
    LayerFile(path="/opt/a/b/text", data=b"line\n" * 100_000, executable=False),
    LayerFile(path="/opt/a/random", data=_CHANCE.randbytes(300_000), executable=True),
    LayerFile(path="/opt/empty", data=b"", executable=False),
    LayerFile(path="/opt/block", data=_CHANCE.randbytes(131_072), executable=False),
    LayerFile(path="/x y\n", data=b"x", executable=False),
    *(
        LayerFile(path=f"/many/{number:05}", data=b"%d" % number, executable=False)
        for number in range(3000)
    ),
]


@pytest.fixture(params=["zstd", "gzip"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    target = tmp_path / "made.sqfs"
    target.write_bytes(squashfs_of(FILES, _MODES, 7, request.param))
    assert compression(Range(path=target, size=target.stat().st_size)) == request.param
    return target


@pytest.fixture
def expected(tmp_path: Path) -> Path:
    """What mksquashfs makes of the same files."""
    tree, target = tmp_path / "tree", tmp_path / "expected.sqfs"
    tree.mkdir(mode=0o755)
    build_folder.write_files(tree, FILES)
    for path in (tree, *tree.rglob("*")):
        if path.is_dir():
            name = str(path.relative_to(tree)).removeprefix(".")
            path.chmod(_MODES.get(name, 0o755))
        os.utime(path, (7, 7))
    assert run(squash_command(target, "zstd"), cwd=tree).returncode == 0
    return target


def test_linux_sees_what_mksquashfs_makes(made: Path, expected: Path, tmp_path: Path) -> None:
    with loop(made, tmp_path / "1") as one, loop(expected, tmp_path / "2") as two:
        found = described(one)
        assert found == described(two)
        assert len(found) == len(FILES) + 5
        assert one.stat().st_nlink == two.stat().st_nlink


def test_unsquashfs_reads_it(made: Path, tmp_path: Path) -> None:
    """It complains of what Linux takes no notice of."""
    done = run(["unsquashfs", "-strict-errors", "-dest", tmp_path / "read", made])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "read/opt/a/random").read_bytes() == FILES[1].data
    assert run(["unsquashfs", "-stat", made]).returncode == 0


def test_it_is_joined_with_what_mksquashfs_made(tmp_path: Path) -> None:
    lower = packed(
        tmp_path, "mkdir -p opt/a; echo old >opt/empty; echo kept >opt/kept", "1", "zstd"
    )
    made = tmp_path / "made.sqfs"
    made.write_bytes(squashfs_of(FILES, _MODES, 7, "zstd"))
    write_joined([lower, made], joined := tmp_path / "joined.sqfs")
    with loop(joined, tmp_path / "j") as tree:
        assert (tree / "opt/kept").read_text() == "kept\n"
        assert (tree / "opt/empty").read_bytes() == b""
        assert (tree / "opt/a/b/text").read_bytes() == FILES[0].data


def test_the_same_files_are_the_same_bytes() -> None:
    assert squashfs_of(FILES, _MODES, 7, "zstd") == squashfs_of(FILES, dict(_MODES), 7, "zstd")
