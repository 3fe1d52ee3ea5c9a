"""Partitions whose bytes the file system shares instead of copying them."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from typing import TYPE_CHECKING

import pytest

from sifwright.images.sif import write_sif
from sifwright.images.sif.write_sif import Contents, Partition
from tests.conftest import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOISE = random.Random(6)  # noqa: S311  # data for tests


def make(folder: Path, *, size: int = 1_200_128) -> Contents[Partition]:
    """Make a base in whole blocks, as mksquashfs pads its files, and a layer."""
    folder.mkdir(exist_ok=True)
    parts = []
    for name, length in (("base", -(-size // 4096) * 4096), ("layer", 8192)):
        data = NOISE.randbytes(length)
        (folder / name).write_bytes(data)
        sha256 = hashlib.sha256(data).hexdigest()
        part = Partition(path=folder / name, name=name, is_system=name == "base", sha256=sha256)
        parts.append(part)
    return Contents(partitions=parts, definition=b"Bootstrap: x\n", arch="amd64")


@pytest.fixture
def xfs(tmp_path: Path) -> Iterator[Path]:
    """Mount a small file system that can share bytes, for real."""
    if shutil.which("mkfs.xfs") is None or os.geteuid() != 0:
        pytest.skip("needs mkfs.xfs and root")
    device, folder = tmp_path / "disk", tmp_path / "xfs"
    device.touch()
    os.truncate(device, 320 << 20)
    folder.mkdir()
    assert run(["mkfs.xfs", "-q", device]).returncode == 0
    assert run(["mount", "-o", "loop", device, folder]).returncode == 0
    try:
        yield folder
    finally:
        run(["umount", folder])


def _used(folder: Path) -> int:
    run(["sync", "-f", folder])
    status = os.statvfs(folder)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


@pytest.mark.all
def test_a_real_file_system_shares(xfs: Path, tmp_path: Path) -> None:
    contents = make(xfs / "store", size=20 << 20)
    before = _used(xfs)
    digest = write_sif.write(xfs / "x.sif", contents)
    assert _used(xfs) - before < 2 << 20
    assert write_sif.write(tmp_path / "z.sif", contents) == digest
