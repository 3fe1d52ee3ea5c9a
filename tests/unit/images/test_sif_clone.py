"""Partitions whose bytes the file system shares instead of copying them: checked all the same."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import random
import shutil
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.images.sif import copy_data, sif_file, write_sif
from sifwright.images.sif.write_sif import Contents, Partition, PartitionError
from tests.conftest import run

if TYPE_CHECKING:
    from collections.abc import Iterator

NOISE = random.Random(6)  # noqa: S311  # data for tests


def make(folder: Path, *, size: int = 1_200_128) -> Contents[Partition]:
    """A base in whole blocks, as mksquashfs pads its files, and a layer."""
    folder.mkdir(exist_ok=True)
    parts = []
    for name, length in (("base", -(-size // 4096) * 4096), ("layer", 8192)):
        data = NOISE.randbytes(length)
        (folder / name).write_bytes(data)
        sha256 = hashlib.sha256(data).hexdigest()
        part = Partition(path=folder / name, name=name, is_system=name == "base", sha256=sha256)
        parts.append(part)
    return Contents(partitions=parts, definition=b"Bootstrap: x\n", arch="amd64")


@dataclass(kw_only=True)
class FakeClone:
    """FICLONERANGE of a file system that can; `refused` are files on another one."""

    refused: set[Path] = field(default_factory=set)
    shared: list[Path] = field(default_factory=list)

    def __call__(self, target: int, request: int, arguments: bytes) -> None:
        assert request == 0x4020940D
        source, offset, size, at = struct.unpack("=qQQQ", arguments)
        path = Path(f"/proc/self/fd/{source}").readlink()
        if path in self.refused:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        assert offset % 4096 == size % 4096 == at % 4096 == 0
        os.pwrite(target, os.pread(source, size, offset), at)
        self.shared.append(path)


@pytest.fixture
def clone(monkeypatch: pytest.MonkeyPatch) -> FakeClone:
    fake = FakeClone()
    monkeypatch.setattr(fcntl, "ioctl", fake)
    return fake


@pytest.fixture
def plain(tmp_path: Path) -> tuple[Contents[Partition], str]:
    """Contents, and the digest of their SIF where nothing can be shared."""
    contents = make(tmp_path / "store")
    return contents, write_sif.write(tmp_path / "plain.sif", contents)


def test_partitions_are_shared_with_their_own_files(
    plain: tuple[Contents[Partition], str], clone: FakeClone, tmp_path: Path
) -> None:
    contents, digest = plain
    assert write_sif.write(tmp_path / "x.sif", contents) == digest
    assert clone.shared == [one.path for one in contents.partitions]


def test_a_shared_partition_with_a_flipped_byte_is_noticed(
    plain: tuple[Contents[Partition], str], clone: FakeClone, tmp_path: Path
) -> None:
    base = plain[0].partitions[0]
    good = base.path.read_bytes()
    for at in NOISE.sample(range(len(good)), 20):
        base.path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(PartitionError, match="has sha256") as caught:
            write_sif.write(tmp_path / "x.sif", plain[0])
        assert caught.value.problems[0].where == str(base.path)
        assert not (tmp_path / "x.sif").exists()
    assert clone.shared == [base.path] * 20


def test_an_older_sif_gives_what_the_cache_cannot_share(
    plain: tuple[Contents[Partition], str], clone: FakeClone, tmp_path: Path
) -> None:
    """The tail changed, and the text before it, so that the base moves within the file."""
    contents, _ = plain
    clone.refused = {one.path for one in contents.partitions}
    data = NOISE.randbytes(8192)
    contents.partitions[1].path.write_bytes(data)
    layer = replace(contents.partitions[1], sha256=hashlib.sha256(data).hexdigest())
    parts = [contents.partitions[0], layer]
    newer = replace(contents, definition=b"#" * 9999, partitions=parts)
    digest = write_sif.write(tmp_path / "x.sif", newer, like=tmp_path / "plain.sif")
    # The layer was shared, too, then found to be another one and copied.
    assert clone.shared == [tmp_path / "plain.sif"] * 2
    assert digest == sif_file.fingerprint(tmp_path / "x.sif")
    clone.refused.add(tmp_path / "plain.sif")
    assert write_sif.write(tmp_path / "y.sif", newer) == digest


def test_an_older_sif_with_a_longer_layer_leaves_nothing_behind_the_end(
    plain: tuple[Contents[Partition], str], clone: FakeClone, tmp_path: Path
) -> None:
    contents, digest = plain
    base, layer = contents.partitions
    longer = replace(base, is_system=False)
    older = replace(contents, partitions=[base, longer])
    write_sif.write(tmp_path / "older.sif", older)
    clone.refused = {base.path, layer.path}
    assert write_sif.write(tmp_path / "x.sif", contents, like=tmp_path / "older.sif") == digest
    assert sif_file.fingerprint(tmp_path / "x.sif") == digest


def test_an_older_sif_need_not_be_good(
    plain: tuple[Contents[Partition], str], clone: FakeClone, tmp_path: Path
) -> None:
    contents, digest = plain
    clone.refused = {one.path for one in contents.partitions}
    older = tmp_path / "plain.sif"
    good = older.read_bytes()
    for number, bad in enumerate(
        (good[:-9000], good[:4200], b"", good.replace(b"SIF_MAGIC", b"SIF_BASIC"))
    ):
        older.write_bytes(bad)
        assert write_sif.write(tmp_path / f"{number}.sif", contents, like=older) == digest
    for at in NOISE.sample(range(32768, len(good)), 20):
        older.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        assert write_sif.write(tmp_path / f"{at}.sif", contents, like=older) == digest
    older.unlink()
    assert write_sif.write(tmp_path / "none.sif", contents, like=older) == digest


def test_an_older_sif_that_goes_away_meanwhile_does_no_harm(
    plain: tuple[Contents[Partition], str],
    clone: FakeClone,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contents, digest = plain
    clone.refused = {one.path for one in contents.partitions}
    older = tmp_path / "plain.sif"
    pad = copy_data.Writer.pad

    def gone(writer: copy_data.Writer, offset: int) -> None:
        older.unlink(missing_ok=True)
        pad(writer, offset)

    monkeypatch.setattr(copy_data.Writer, "pad", gone)
    assert write_sif.write(tmp_path / "x.sif", contents, like=older) == digest


@pytest.fixture
def xfs(tmp_path: Path) -> Iterator[Path]:
    """A small file system that can share bytes, for real."""
    if shutil.which("mkfs.xfs") is None or os.geteuid() != 0:
        pytest.skip("needs mkfs.xfs and root")
    device, place = tmp_path / "disk", tmp_path / "xfs"
    device.touch()
    os.truncate(device, 320 << 20)
    place.mkdir()
    assert run(["mkfs.xfs", "-q", device]).returncode == 0
    assert run(["mount", "-o", "loop", device, place]).returncode == 0
    try:
        yield place
    finally:
        run(["umount", place])


def _used(place: Path) -> int:
    run(["sync", "-f", place])
    status = os.statvfs(place)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


def test_a_real_file_system_shares(xfs: Path, tmp_path: Path) -> None:
    contents = make(xfs / "store", size=20 << 20)
    before = _used(xfs)
    digest = write_sif.write(xfs / "x.sif", contents)
    # The cache may be on another file system than the image and its older one.
    shutil.copytree(xfs / "store", tmp_path / "store")
    elsewhere = [
        replace(one, path=tmp_path / "store" / one.path.name) for one in contents.partitions
    ]
    newer = replace(contents, partitions=elsewhere)
    assert write_sif.write(xfs / "y.sif", newer, like=xfs / "x.sif") == digest
    assert _used(xfs) - before < 2 << 20
    assert write_sif.write(tmp_path / "z.sif", contents) == digest
