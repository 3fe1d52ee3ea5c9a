"""Files that ADD unpacks: an archive, no archive, a broken one, or a bomb."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from sifwright.recipe_import.context import MAX_FILE_BYTES, ContextError
from sifwright.recipe_import.dockerfile import archives
from tests.system.importing.packing import NOISE, tar

if TYPE_CHECKING:
    from collections.abc import Callable

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.fixture(params=sorted(PACK))
def pack(request: pytest.FixtureRequest) -> Callable[[bytes], bytes]:
    return PACK[request.param]


def test_unpacked(pack: Callable[[bytes], bytes]) -> None:
    assert archives.unpacked(pack(tar(NOISE))) == tar(NOISE)
    assert archives.unpacked(tar(NOISE)) == tar(NOISE)


def test_one_that_ends_early_or_is_damaged(pack: Callable[[bytes], bytes]) -> None:
    packed = pack(tar(NOISE))
    damaged = packed[:-20] + b"\xff" * 8 + packed[-12:]
    for broken in (packed[:-2000], packed[:-9], tar(NOISE)[: 1 << 19], damaged):
        with pytest.raises(ContextError, match="ends early, or is broken"):
            archives.unpacked(broken)


@pytest.mark.parametrize("word", ["map=1,x", "size=zz", "major=1"])
def test_one_that_says_nonsense(word: str) -> None:
    name, _, text = word.partition("=")
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo("one")
        entry.pax_headers = {"GNU.sparse.minor": "0", f"GNU.sparse.{name}": text}
        archive.addfile(entry)
    with pytest.raises(ContextError, match="ends early, or is broken"):
        archives.unpacked(data.getvalue())


def test_no_archive(pack: Callable[[bytes], bytes]) -> None:
    """Copy a file that begins with no entry, as Docker does (tried on 20.10)."""
    assert archives.unpacked(pack(NOISE)) is None
    assert archives.unpacked(pack(b"")) is None
    assert archives.unpacked(pack(b"a,b\n" * (2 << 20))) is None
    assert archives.unpacked(pack(tar(NOISE))[:20]) is None
    assert archives.unpacked(bytes(10240)) is None
    assert archives.unpacked(b"") is None


def test_a_bomb(pack: Callable[[bytes], bytes]) -> None:
    bomb = pack(tar(bytes(64 << 20)))
    assert len(bomb) < MAX_FILE_BYTES
    tracemalloc.start()
    with pytest.raises(ContextError, match="larger than 4 MiB"):
        archives.unpacked(bomb)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 * MAX_FILE_BYTES


@pytest.mark.parametrize("name", ["../up", "a/../../b"])
def test_names_that_lead_out(name: str) -> None:
    with pytest.raises(ContextError, match="the archive holds"):
        archives.unpacked(tar(b"", name))
