"""Squashfs files joined: what it takes in memory, and names that contradict their files."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.model import LayerFile
from sifwright.images.sif.copy_data import Range
from sifwright.images.squashfs.inodes import DIRECTORY, FILE
from sifwright.images.squashfs.join_layers import join
from sifwright.images.squashfs.structures import BadSquashfs
from tests.conftest import run
from tests.unit.sifs import squashfs_of

if TYPE_CHECKING:
    from pathlib import Path

FEW = 2000
# Bytes for each file. The reference of its inode takes 17, as it is there twice while the table is
# written. Its packed inode and name take 40, up to three times. With an object for each file until
# all are written, the figure was 1490.
BYTES = 100
SMALL, LARGE = "a-folder", "a-file"


@pytest.mark.all
def test_memory_does_not_hold_the_tree(tmp_path: Path) -> None:
    few, many = (_peak(_layer(tmp_path, count)) for count in (FEW, 2 * FEW))
    assert (many - few) / FEW < BYTES


def _layer(folder: Path, count: int) -> Range:
    """Make so many files, some of them in each folder."""
    names = (f"/packages/package-{number // 25:05}/a-module-{number:06}" for number in range(count))
    files = [LayerFile(path=name, data=name.encode(), executable=False) for name in names]
    return _written(folder / str(count), squashfs_of(*files, compression="gzip"))


def _peak(layer: Range) -> int:
    tracemalloc.start()
    try:
        # Twice: all folders are merged.
        join([layer, layer])
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_layers_of_two_compressors_are_refused(tmp_path: Path) -> None:
    file = LayerFile(path="/file", data=b"text", executable=False)
    layers = [
        _written(tmp_path / name, squashfs_of(file, compression=name)) for name in ("gzip", "zstd")
    ]
    with pytest.raises(BadSquashfs, match="compressed in another way"):
        join(layers)


@pytest.mark.parametrize(("name", "kind"), [(SMALL, DIRECTORY), (LARGE, FILE)])
def test_names_of_another_kind_than_their_files(tmp_path: Path, name: str, kind: int) -> None:
    (tmp_path / "tree" / SMALL).mkdir(parents=True)
    (tmp_path / "tree" / SMALL / LARGE).write_text("x")
    # Without compression of inodes and names.
    command = ["mksquashfs", tmp_path / "tree", tmp_path / "good", "-noI", "-quiet", "-no-progress"]
    assert run(command).returncode == 0
    whole = bytearray((tmp_path / "good").read_bytes())
    # A number of 16 bits, with one behind it.
    index = whole.index(name.encode()) - 4
    assert join([Range(path=tmp_path / "good", size=len(whole))])
    assert whole[index] == kind
    whole[index] = DIRECTORY + FILE - kind
    with pytest.raises(BadSquashfs, match="a name is of another kind than its file"):
        join([_written(tmp_path / "bad", whole)])


def _written(path: Path, data: bytes | bytearray) -> Range:
    path.write_bytes(data)
    return Range(path=path, size=len(data))
