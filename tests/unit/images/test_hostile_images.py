"""Images that were made to take all time or memory: they are refused by name, or told in moments.

Each is looked at by a process of its own with a limit of memory. None of these tests measures
speed: what was wrong took hours, or gigabytes.
"""

from __future__ import annotations

import hashlib
import json
import resource
import struct
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.model import LayerFile
from sifwright.images.squashfs.inodes import DIRECTORY
from sifwright.images.squashfs.structures import SUPERBLOCK_BYTES, Superblock
from tests.conftest import run
from tests.unit.sifs import squashfs_of, write_sif

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.all

_NAME_BYTES = 4000
_SECONDS, _MOST_BYTES, _MOST_KILOBYTES = 240, 3 << 30, 600_000


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def write_layout(folder: Path, layers: Iterable[Iterable[bytes]]) -> None:
    """Write an image of these tar files, in pieces, as a folder of the OCI image layout."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def put(data: bytes) -> dict[str, object]:
        (blobs / _digest(data)[7:]).write_bytes(data)
        return {"digest": _digest(data), "size": len(data)}

    parts = [put(_packed(layer)) for layer in layers]
    config = put(json.dumps({"architecture": "amd64", "os": "linux"}).encode())
    manifest = put(json.dumps({"schemaVersion": 2, "config": config, "layers": parts}).encode())
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))


def _packed(pieces: Iterable[bytes]) -> bytes:
    packer = zstd.ZstdCompressor(level=1)
    return b"".join([*map(packer.compress, pieces), packer.flush()])


def _member(name: str, data: bytes = b"", *, link: str = "", **facts: object) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    if link:
        entry.type, entry.linkname = tarfile.SYMTYPE, link
    for key, value in facts.items():
        setattr(entry, key, value)
    return entry.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % tarfile.BLOCKSIZE)


def _long(name: bytes, rest: bytes) -> bytes:
    """Make a member whose name is in a header of its own, so that no checksum covers it."""
    return _member("././@LongLink", name + b"\0", type=tarfile.GNUTYPE_LONGNAME) + rest


def _promises_more() -> Iterator[bytes]:
    yield _member("x", size=1 << 62)


def _versions_without_end() -> Iterator[bytes]:
    for number in range(2000):
        name = b"%d/libcudart.so.1.%sx" % (number, b"1" * _NAME_BYTES)
        yield _long(name, _member("x"))
    yield _member("lib/libmpi.so", b"Open MPI v\0" + b"\0001.1." + b"1" * (4 << 20))


def _libraries_that_begin() -> Iterator[bytes]:
    yield _member("etc/os-release", b"GNU C Library " * 70_000)


def _library_of_zeros() -> Iterator[bytes]:
    yield _member("lib/libmpi.so.40", bytes(60 << 20))


def _settings_of_blanks() -> Iterator[bytes]:
    yield _member("usr/bin/python3", b"x")
    for number in range(1000):
        yield _member(f"v{number}/pyvenv.cfg", b"home=x%sx" % (b" " * 4000))
        yield _member(f"v{number}/bin/python", b"x")


def _links_with_parents() -> Iterator[bytes]:
    link = _member("x", link="y")
    for number in range(2000):
        yield _long(b"%d/%s" % (number, b"aaa/" * (_NAME_BYTES // 4)), link)


def _links_in_a_maze() -> Iterator[bytes]:
    """Make links that are 40 links long, each of which goes up and down a thousand times."""
    for number in range(39):
        yield _member(f"l{number}", link="d/../" * 800 + f"l{number + 1}")
    for number in range(20_000):
        yield _member(f"p/libnccl-net-{number}.so", link="../l0")


def _whiteouts() -> Iterator[bytes]:
    rest = _member("x")
    for number in range(80_000):
        yield _long(b"%d/.wh.%s" % (number, b"a" * _NAME_BYTES), rest)


def _folders_that_go(sign: str) -> Iterator[bytes]:
    for number in range(20_000):
        yield _member(f"{sign}{number}{'' if sign else '/x'}", link="" if sign else "y")


def _headers_of_headers() -> Iterator[bytes]:
    data = b"1000000 path=" + b"a" * 999_986 + b"\n"
    header = _member("x", data, type=tarfile.XHDTYPE)
    for _ in range(900):
        yield header
    yield _member("x")


def _environments() -> Iterator[bytes]:
    for number in range(10_000):
        for name in ("pyvenv.cfg", "bin/python", "lib/python3.11/os.py", "lib/python3.12/os.py"):
            yield _member(f"{number}/{name}", b"x")


LAYERS: dict[str, list[Callable[[], Iterator[bytes]]]] = {
    "a member of 2^62 bytes": [_promises_more],
    "versions without end": [_versions_without_end],
    "a library's name again and again": [_libraries_that_begin],
    "libraries of zeros in each layer": [_library_of_zeros] * 5,
    "blanks without end": [_settings_of_blanks],
    "links with 1000 parents each": [_links_with_parents],
    "links through links": [_links_in_a_maze],
    "whiteouts": [_whiteouts],
    "folders that go one by one": [lambda: _folders_that_go(""), lambda: _folders_that_go(".wh.")],
    "headers of headers": [_headers_of_headers],
    "ten thousand environments": [_environments],
}


def _with_script(text: str) -> bytes:
    path = "/.singularity.d/env/10-x.sh"
    return squashfs_of(LayerFile(path=path, data=text.encode(), executable=False))


def _doubling_variables() -> bytes:
    """Make 50,000 variables, each as long as one may be."""
    first = "A=" + "x" * 32_000
    return _with_script("\n".join([first, *(f"A{number}=$A$A" for number in range(50_000))]))


def _folder_of_zeros() -> bytes:
    """Make a directory of 4 GiB by its inode; the file has 8 KiB of zeros, many times."""
    block = zstd.compress(bytes(8192))
    table = struct.pack("<H", len(block)) + block
    # A directory (long form): the common part, links, size, block, parent, index, offset, xattrs.
    inode = struct.pack("<4H2I", DIRECTORY + 7, 0o755, 0, 0, 0, 1)
    inode += struct.pack("<4I2HI", 2, (1 << 32) - 1, 0, 2, 0, 0, (1 << 32) - 1)
    start = SUPERBLOCK_BYTES + 2 + len(inode)
    superblock = Superblock(
        inodes=(1 << 32) - 1,
        block_size=1 << 17,
        compressor=6,
        block_log=17,
        inode_table=SUPERBLOCK_BYTES,
        directory_table=start,
        bytes_used=start + len(table) * 200_000,
    )
    return superblock.packed() + struct.pack("<H", len(inode) | 1 << 15) + inode + table * 200_000


SIFS = {"variables that double": _doubling_variables, "a folder of zeros": _folder_of_zeros}
_LOOK = """
import sys
from sifwright.cli.main import main
status = main(["inspect", sys.argv[1], "--json"])
with open("/proc/self/status") as file:
    print([line.split()[1] for line in file if line.startswith("VmHWM")][0], file=sys.stderr)
sys.exit(status)
"""
REFUSED = {
    "a member of 2^62 bytes": "a layer is no tar file, or not all of one: it is cut off",
    "libraries of zeros in each layer": "its libraries have more than 256 MiB",
    "links with 1000 parents each": "take more than 256 MiB of memory",
    "links through links": "its links lead through more folders than an image can have",
    "whiteouts": "take more than 256 MiB of memory",
    "headers of headers": "it has more than 8 headers of one file",
    "variables that double": "its scripts set more variables than a program can start with",
    "a folder of zeros": "a name that cannot be one",
}


def _look(image: str) -> tuple[int, str]:
    """Return the status and the message of a look at an image; fail if it takes too much."""
    done = run(
        [sys.executable, "-c", _LOOK, image],
        timeout=_SECONDS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES)),
    )
    *errors, peak = done.stderr.splitlines() or ["nothing"]
    assert peak.isdecimal(), done.stderr[-2000:]
    assert int(peak) < _MOST_KILOBYTES
    return done.returncode, "\n".join(errors)


def _check(case: str, status: int, message: str) -> None:
    assert REFUSED.get(case, "") in message
    assert (status, "Copy or build the image again" in message) == (
        (2, True) if message else (0, False)
    )
    assert bool(message) == (case in REFUSED)


@pytest.mark.parametrize("case", LAYERS)
def test_layers(case: str, tmp_path: Path) -> None:
    write_layout(tmp_path / "x", [make() for make in LAYERS[case]])
    _check(case, *_look(f"oci:{tmp_path / 'x'}"))


@pytest.mark.parametrize("case", SIFS)
def test_sifs(case: str, tmp_path: Path) -> None:
    write_sif(tmp_path / "x.sif", SIFS[case]())
    _check(case, *_look(str(tmp_path / "x.sif")))
