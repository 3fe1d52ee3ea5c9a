"""Causes of other bytes in a file of two builds, and their lines."""

import gzip
from pathlib import Path

import pytest

from sifwright.catalog.model import LayerFile
from sifwright.images.sif.write_sif import Composed, Contents, write
from sifwright.report.diff.bytes_of_builds import differing_bytes
from sifwright.report.diff.causes import likely_cause
from tests.unit.sifs import squashfs_of


@pytest.mark.parametrize(
    ("path", "old", "new", "cause"),
    [
        (b"a.pyc", b"0" * 16 + b"code", b"1" * 16 + b"code", "bytecode: time or digest"),
        (b"a.pyc", b"0" * 16 + b"code", b"0" * 16 + b"edoc", "bytecode: what was compiled"),
        (b"a.gz", gzip.compress(b"a", mtime=1), gzip.compress(b"a", mtime=2), "time in the header"),
        (b"liba.a", b"!<arch>\na.o/ 1", b"!<arch>\na.o/ 2", "archive of ar"),
        (b"a.zip", b"PK\3\4a", b"PK\3\4b", "zip archive"),
        (b"var/log/dpkg.log", b"a", b"b", "a log or a cache"),
        (b"etc/ssh/ssh_host_rsa_key", b"a", b"b", "at random"),
        (b"x", b"\0built 2026-11-24 23:59\0", b"\0built 2026-11-25 00:00\0", "date: 'built 2026"),
        (b"x", b"on Nov  4 2026\n", b"on Nov 14 2026\n", "date: 'on Nov  4 2026' -> 'on Nov 14"),
        (b"x", b"\0/tmp/pip-abc/a.c\0", b"\0/tmp/pip-xyz/a.c\0", "path: '/tmp/pip-abc/a.c' -> "),
        (b"x", b"b\na\n", b"a\nb\n", "the order of its lines"),
        (b"x", b"\0\1\2", b"\0\1\3", "unknown; the first other byte is number 2"),
        (b"x", b"same", b"same and more", "unknown; the first other byte is number 4"),
    ],
)
def test_a_likely_cause(path: bytes, old: bytes, new: bytes, cause: str) -> None:
    assert cause in likely_cause(path, old, new)


def sif(path: Path, *layers: bytes, definition: bytes = b"Bootstrap: scratch\n") -> Path:
    parts = [
        Composed(pieces=[data], name=f"layer{number}", is_system=number == 0)
        for number, data in enumerate(layers)
    ]
    write(path, Contents(partitions=parts, definition=definition, arch="amd64"))
    return path


def layer(**texts: str) -> bytes:
    return squashfs_of(*(LayerFile.of_text(f"/{name}", text) for name, text in texts.items()))


def test_the_same_builds(tmp_path: Path) -> None:
    files = [sif(tmp_path / name, layer(a="1"), layer(b="2")) for name in ("old", "new")]
    assert differing_bytes(*files) == []


def test_differing_files_are_named_by_layer(tmp_path: Path) -> None:
    base = layer(a="1")
    old = sif(tmp_path / "old", base, layer(b="built 10:20:30", c="same", d="x"))
    new = sif(tmp_path / "new", base, layer(b="built 10:20:31", c="same", e="x"))
    assert differing_bytes(old, new) == [
        "layer layer1: 3 paths differ",
        "    /b: date: 'built 10:20:30' -> 'built 10:20:31'",
        "    /d: gone",
        "    /e: new",
    ]


def test_ten_files_of_a_layer_are_named(tmp_path: Path) -> None:
    old, new = (layer(**{f"f{n:02}": text for n in range(12)}) for text in ("a", "b"))
    lines = differing_bytes(sif(tmp_path / "old", old), sif(tmp_path / "new", new))
    assert lines[0] == "layer layer0: 12 paths differ"
    assert len(lines) == 11


def test_other_objects_and_missing_layers(tmp_path: Path) -> None:
    data = layer(a="1")
    old = sif(tmp_path / "old", data, definition=b"From: a\n")
    new = sif(tmp_path / "new", data, data, definition=b"From: b\n")
    assert differing_bytes(old, new) == [
        "definition file: unknown; the first other byte is number 6",
        "layer layer1 is in one of them only",
    ]
