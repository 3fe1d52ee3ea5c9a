"""Partitions whose bytes the file system shares instead of copying them."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from sifwright.images.sif import write_sif
from sifwright.images.sif.write_sif import Contents
from tests.conftest import run
from tests.unit.images.test_sif_image import partition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
    # The base is in whole blocks, as mksquashfs pads its files.
    parts = [partition(xfs / name, size) for name, size in (("base", 20 << 20), ("layer", 8192))]
    contents = Contents(partitions=parts, definition=b"Bootstrap: x\n", arch="amd64")
    before = _used(xfs)
    digest = write_sif.write(xfs / "x.sif", contents)
    assert _used(xfs) - before < 2 << 20
    assert write_sif.write(tmp_path / "z.sif", contents) == digest
