"""`sifwright flatten` of SIFs that others may have made."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sifwright.errors import MachineError, UsageError
from sifwright.images.sif import sif_file, write_sif
from sifwright.images.sif.copy_data import Range
from sifwright.images.squashfs.join_layers import compression
from sifwright.make_image.deliver.flatten_sif import flatten_sif
from tests.conftest import run, sifwright
from tests.system.apptainer.toy_sif import toy_sif
from tests.system.apptainer.toys import succeeded

# The position of the processor in a SIF's header, by pkg/sif/sif.go of apptainer/sif. Before it are
# the launcher's line, the magic and the version.
_ARCH = 32 + 10 + 3


@pytest.fixture
def layered(tmp_path: Path) -> Path:
    return toy_sif(tmp_path, ["zstd", "zstd"])


def _flattened(source: Path, *words: str) -> str:
    """Return the compression of the flat SIF, which has the files of both layers."""
    target = source.with_name("flat.sif")
    done = succeeded(sifwright("flatten", source, target, *words))
    assert "MB, 2 partitions into 1)" in done.stdout
    (part,) = sif_file.partitions(target)
    folder = Range(path=target, offset=part.offset, size=part.size)
    tree = source.with_name("flat")
    words = ("-no-progress", "-quiet", "-offset", str(part.offset), "-dest", str(tree))
    assert run(["unsquashfs", *words, target]).returncode == 0
    assert [(tree / "data" / name).read_text() for name in "01"] == ["of layer 0\n", "of layer 1\n"]
    return compression(folder)


@pytest.mark.parametrize(
    ("compressors", "words", "expected"),
    [
        (["zstd", "zstd"], (), "zstd"),
        (["zstd", "zstd"], ("--compression", "gzip"), "gzip"),
        (["gzip", "zstd"], (), "zstd"),
    ],
    ids=["blocks as they are", "asked for", "packed again"],
)
def test_compression(
    tmp_path: Path, compressors: list[str], words: tuple[str, ...], expected: str
) -> None:
    assert _flattened(toy_sif(tmp_path, compressors), *words) == expected


def test_a_flat_sif_gets_another_compression(tmp_path: Path) -> None:
    """Replace zstd, which SingularityCE cannot read."""
    flat, target = toy_sif(tmp_path, ["zstd"]), tmp_path / "gzip.sif"
    assert flatten_sif(flat, target, "gzip") == 1
    (part,) = sif_file.partitions(target)
    assert compression(Range(path=target, offset=part.offset, size=part.size)) == "gzip"
    listed = run(["unsquashfs", "-cat", "-offset", str(part.offset), target, "data/0"])
    assert listed.stdout == "of layer 0\n"
    with pytest.raises(UsageError, match="is flat already"):
        flatten_sif(target, tmp_path / "again.sif", "gzip")


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_that_was_made_meanwhile_stays(
    layered: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool
) -> None:
    target, real = layered.with_name("flat.sif"), write_sif.write

    def write(*arguments: Any) -> object:
        target.write_text("of somebody else")
        return real(*arguments)

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    if not has_links:
        monkeypatch.setattr(Path, "hardlink_to", refuse)
    with monkeypatch.context() as patch:
        patch.setattr(write_sif, "write", write)
        with pytest.raises(UsageError, match="is there already") as caught:
            flatten_sif(layered, target, "")
    assert caught.value.problems[0].fix == "Give another name."
    assert target.read_text() == "of somebody else"
    target.unlink()
    assert flatten_sif(layered, target, "") == 2
    assert len(sif_file.partitions(target)) == 1
    assert target.stat().st_nlink == 1


def test_an_overlay_that_is_no_squashfs_is_not_lost(engine: str, layered: Path) -> None:
    if shutil.which("mkfs.ext3") is None:
        pytest.skip("needs mkfs.ext3")
    succeeded(run([engine, "overlay", "create", "--size", "64", layered]))
    done = sifwright("flatten", layered, layered.with_name("flat.sif"))
    assert done.returncode == 2
    assert "object 4 is an overlay that is no squashfs" in done.stderr
    assert "apptainer sif del 4 COPY" in done.stderr
    assert not layered.with_name("flat.sif").exists()
    assert run([engine, "sif", "del", "4", layered]).returncode == 0
    assert _flattened(layered) == "zstd"


@pytest.mark.parametrize(
    ("compressors", "path", "says"),
    [
        (["zstd", "zstd"], "target", "needed for the flat SIF"),
        (["gzip", "zstd"], "target", "needed for the flat SIF"),
        (["gzip", "zstd"], "temporary", "needed for the layers of the SIF"),
        (["gzip", "zstd"], "tree", "needed to unpack the layers and pack them again"),
    ],
)
def test_too_little_room_is_said_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compressors: list[str], path: str, says: str
) -> None:
    source, target = toy_sif(tmp_path, compressors), tmp_path / "target" / "flat.sif"
    temporary = tmp_path / "temporary"
    monkeypatch.setenv("APPTAINER_TMPDIR", str(temporary))
    target.parent.mkdir()
    packed = sum(partition.size for partition in sif_file.partitions(source))
    # A tree of three paths takes more than the squashfs of it.
    free = {"target": 99, "temporary": packed - 1, "tree": packed}[path]

    def usage(folder: Path) -> SimpleNamespace:
        is_full = (folder == target.parent) == (path == "target")
        return SimpleNamespace(free=free if is_full else 10**9)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    with pytest.raises(MachineError, match=says) as caught:
        flatten_sif(source, target, "")
    where = target.parent if path == "target" else temporary
    assert caught.value.problems[0].where.startswith(str(where))
    assert list(target.parent.iterdir()) == []


def test_a_processor_that_is_not_known(layered: Path) -> None:
    data = bytearray(layered.read_bytes())
    assert data[_ARCH : _ARCH + 2] == b"02"
    data[_ARCH : _ARCH + 2] = b"77"
    layered.write_bytes(data)
    done = sifwright("flatten", layered, layered.with_name("flat.sif"))
    assert done.returncode == 2
    assert "is for a processor that is not known here" in done.stderr
    assert "    Known: 386, amd64, " in done.stderr
    assert "Traceback" not in done.stderr
