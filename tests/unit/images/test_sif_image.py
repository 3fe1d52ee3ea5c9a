"""SIF files without an engine: the same bytes every time, damage noticed, nothing left behind."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import random
import tempfile
import time
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import BuildError
from sifwright.images.sif import copy_data, sif_file, write_sif
from sifwright.images.sif.fingerprint import measure, sif_fingerprint
from sifwright.images.sif.sif_file import SifError
from sifwright.images.sif.write_sif import Contents, Partition, PartitionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOISE = random.Random(5)  # noqa: S311  # data for tests


@pytest.fixture
def contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Contents[Partition]:
    """Make two partitions; the first is longer than a block that is copied at a time."""
    monkeypatch.setattr(copy_data, "_SPAN", 1 << 20)
    (tmp_path / "store").mkdir()
    sizes = {"base": 1_500_000, "layer": 20_000}
    parts = [partition(tmp_path / "store" / name, size) for name, size in sizes.items()]
    return Contents(partitions=parts, definition=b"Bootstrap: x\n", metadata=b"{}", arch="amd64")


def partition(path: Path, size: int) -> Partition:
    """Write noise; the one with the name base is the system."""
    data = NOISE.randbytes(size)
    path.write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    return Partition(path=path, name=path.name, is_system=path.name == "base", sha256=sha256)


def test_a_written_sif_is_read_again(contents: Contents[Partition], tmp_path: Path) -> None:
    sif = tmp_path / "x.sif"
    assert write_sif.write(sif, contents) == measure(sif)
    image = sif_file.read(sif)
    assert [descriptor.name for descriptor in image.descriptors] == [
        "",
        "inspect-metadata.json",
        "base",
        "layer",
    ]
    assert [sif_file.data(sif, descriptor) for descriptor in image.descriptors[:2]] == [
        b"Bootstrap: x\n",
        b"{}",
    ]
    assert sif_file.partitions(sif) == image.partitions == image.descriptors[2:]
    for number, (descriptor, part) in enumerate(
        zip(image.partitions, contents.partitions, strict=True)
    ):
        target = tmp_path / f"part-{number}"
        sif_file.extract(sif, descriptor, target)
        assert sif_file.digest(sif, descriptor) == part.sha256
        assert target.read_bytes() == part.path.read_bytes()


def test_the_fingerprint_is_of_the_partitions_and_of_all_else(
    contents: Contents[Partition], tmp_path: Path
) -> None:
    write_sif.write(sif := tmp_path / "x.sif", contents)
    with sif.open("ab") as file:
        file.write(b"a signature")
    data, (base, layer) = sif.read_bytes(), sif_file.partitions(sif)
    rest = data[: base.offset] + data[base.end : layer.offset] + data[layer.end :]
    parts = (rest, *(data[partition.offset : partition.end] for partition in (base, layer)))
    words = " ".join(hashlib.sha256(partition).hexdigest() for partition in parts)
    assert sif_fingerprint(sif) == hashlib.sha256(words.encode()).hexdigest()


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EXDEV, errno.EIO])
def test_bytes_that_the_kernel_does_not_copy_are_read_and_written(
    contents: Contents[Partition], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    digest = write_sif.write(tmp_path / "kernel.sif", contents)

    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "copy_file_range", refuse)
    assert write_sif.write(tmp_path / "own.sif", contents) == digest
    assert (tmp_path / "own.sif").read_bytes() == (tmp_path / "kernel.sif").read_bytes()


def _write_as(uid: int, umask: int, target: Path, contents: Contents[Partition]) -> None:
    os.umask(umask)
    if uid != os.geteuid():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    write_sif.write(target, contents)


@pytest.fixture
def shared() -> Iterator[Path]:
    """Make a folder that other users can write in; pytest's own are closed to them."""
    with tempfile.TemporaryDirectory(prefix="sifwright-test-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def test_bytes_do_not_depend_on_time_folder_umask_and_user(shared: Path) -> None:
    base = partition(shared / "base", 20_000)
    base.path.chmod(0o644)
    contents = Contents(partitions=[base], definition=b"x", arch="amd64")
    write_sif.write(shared / "x.sif", contents)
    first = hashlib.sha256((shared / "x.sif").read_bytes()).hexdigest()
    users = (0, 33) if os.geteuid() == 0 else (os.geteuid(),)
    for uid, umask in itertools.product(users, (0o007, 0o022, 0o077)):
        time.sleep(0.2)
        target = shared / f"{uid}" / f"öther {umask}.sif"
        target.parent.mkdir(exist_ok=True)
        target.parent.chmod(0o777)
        workdir = (uid, umask, target, contents)
        child = get_context("forkserver").Process(target=_write_as, args=workdir)
        child.start()
        child.join()
        assert child.exitcode == 0
        assert target.stat().st_uid == uid
        assert target.stat().st_mode & 0o777 == 0o755 & ~umask
        assert hashlib.sha256(target.read_bytes()).hexdigest() == first


def _assert_refused(
    contents: Contents[Partition], target: Path, damaged: Partition, message: str
) -> None:
    with pytest.raises(PartitionError, match=message) as caught:
        write_sif.write(target, contents)
    assert caught.value.problems[0].where == str(damaged.path)
    assert str(damaged.path) in str(caught.value)
    assert not target.exists()


def test_every_flipped_byte_of_a_partition_is_noticed(
    contents: Contents[Partition], tmp_path: Path
) -> None:
    layer = contents.partitions[1]
    contents = replace(contents, partitions=[layer])
    good = layer.path.read_bytes()
    for at in (0, len(good) - 1, *NOISE.sample(range(len(good)), 998)):
        bad = bytearray(good)
        bad[at] ^= 1 << at % 8
        layer.path.write_bytes(bad)
        _assert_refused(contents, tmp_path / "x.sif", layer, "has sha256 .*, not ")
    layer.path.write_bytes(good)
    write_sif.write(tmp_path / "x.sif", contents)


def test_a_partition_that_shrinks_meanwhile_is_noticed(
    contents: Contents[Partition], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = contents.partitions[0]
    monkeypatch.setattr(copy_data.Writer, "pad", lambda *_: os.truncate(base.path, 4096))
    _assert_refused(contents, tmp_path / "x.sif", base, "ends at byte 4096, too early")


def test_a_partition_that_cannot_be_read_is_named(
    contents: Contents[Partition], tmp_path: Path
) -> None:
    base, layer = contents.partitions
    layer.path.unlink()
    _assert_refused(contents, tmp_path / "x.sif", layer, "No such file or directory")
    layer.path.touch()
    base.path.unlink()
    base.path.mkdir()
    _assert_refused(contents, tmp_path / "x.sif", base, "cannot be read: Is a directory")


def test_a_file_that_is_there_already_stays(contents: Contents[Partition], tmp_path: Path) -> None:
    (tmp_path / "x.sif").write_text("older")
    with pytest.raises(BuildError, match="cannot be written: File exists"):
        write_sif.write(tmp_path / "x.sif", contents)
    assert (tmp_path / "x.sif").read_text() == "older"


def test_an_interruption_leaves_nothing(
    contents: Contents[Partition], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_file: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_sif.write(tmp_path / "x.sif", contents)
    assert not (tmp_path / "x.sif").exists()


def test_a_sif_is_synced_when_it_is_whole(
    contents: Contents[Partition], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file)))
    write_sif.write(tmp_path / "x.sif", contents)
    status = (tmp_path / "x.sif").stat()
    assert [(path.st_ino, path.st_size) for path in synced] == [(status.st_ino, status.st_size)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (str, "cannot be read: No such file or directory"),
        (lambda path: path.mkdir(), "is not a regular file"),
        (os.mkfifo, "is not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
        (lambda path: path.write_bytes(b""), "has no SIF header"),
        (lambda path: path.write_bytes(bytes(9999)), "has no SIF header"),
        (lambda path: path.write_bytes(NOISE.randbytes(9999)), "has no SIF header"),
    ],
)
def test_other_files_are_refused(
    make: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    make(tmp_path / "x")
    with pytest.raises(SifError, match=f"x: cannot be used as a SIF: it {message}"):
        sif_file.read(tmp_path / "x")


def test_a_cut_off_sif_is_refused(contents: Contents[Partition], tmp_path: Path) -> None:
    sif = tmp_path / "x.sif"
    write_sif.write(sif, contents)
    whole = sif.stat().st_size
    for size in (whole - 1, *sorted(NOISE.sample(range(whole), 300), reverse=True), 127, 41, 0):
        os.truncate(sif, size)
        with pytest.raises(SifError, match=r"it (is cut off|has no SIF header)"):
            sif_file.read(sif)


def test_a_damaged_head_is_refused_or_read(contents: Contents[Partition], tmp_path: Path) -> None:
    """Raise only `SifError` for any numbers, and soon."""
    sif = tmp_path / "x.sif"
    small = [replace(contents.partitions[1], is_system=True)]
    write_sif.write(sif, replace(contents, partitions=small))
    good = sif.read_bytes()
    places = [*range(128), *range(4096, 4096 + 3 * 585)]
    for _ in range(1500):
        bad = bytearray(good)
        for at in NOISE.sample(places, NOISE.randint(1, 8)):
            bad[at] = NOISE.choice((0, 1, 0x7F, 0x80, 0xFF, NOISE.randrange(256)))
        sif.write_bytes(bad)
        try:
            for partition in sif_file.partitions(sif):
                sif_file.digest(sif, partition)
        except SifError:
            continue


def test_an_object_too_big_to_be_text_is_refused(
    contents: Contents[Partition], tmp_path: Path
) -> None:
    sif = tmp_path / "x.sif"
    write_sif.write(sif, contents)
    os.truncate(sif, 2**40)
    huge = replace(sif_file.read(sif).descriptors[0], size=2**39)
    with pytest.raises(SifError, match=f"it has an object of {2**39} bytes"):
        sif_file.data(sif, huge)


def test_an_image_without_a_system_is_refused(
    contents: Contents[Partition], tmp_path: Path
) -> None:
    only = replace(contents, partitions=contents.partitions[1:])
    write_sif.write(tmp_path / "x.sif", only)
    with pytest.raises(SifError, match="it has no squashfs system partition"):
        sif_file.partitions(tmp_path / "x.sif")


def test_extracting_from_a_sif_that_is_cut_off_leaves_nothing(
    contents: Contents[Partition], tmp_path: Path
) -> None:
    write_sif.write(tmp_path / "x.sif", contents)
    last = sif_file.read(tmp_path / "x.sif").descriptors[-1]
    os.truncate(tmp_path / "x.sif", last.end - 1)
    with pytest.raises(SifError, match="too early"):
        sif_file.extract(tmp_path / "x.sif", last, tmp_path / "part")
    assert not (tmp_path / "part").exists()
    with pytest.raises(SifError, match="too early"):
        sif_file.digest(tmp_path / "x.sif", last)
