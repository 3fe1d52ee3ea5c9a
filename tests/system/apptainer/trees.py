"""Unpack a SIF and describe its tree, so that two images can be compared."""

from __future__ import annotations

import hashlib
import marshal
import os
import re
import stat
from typing import TYPE_CHECKING

from sifwright.images.sif import sif_file
from sifwright.make_image.pack_layers.merge_layers import flatten
from sifwright.make_image.pack_layers.pack import PackOptions
from tests.conftest import run

if TYPE_CHECKING:
    from pathlib import Path

# Differences between two builds of the same definition file, and their reasons.
VOLATILE = re.compile(
    r"\.singularity\.d/labels\.json$"  # holds the date of the build
    r"|var/cache/ldconfig/aux-cache$"  # holds inode numbers
    r"|etc/shadow-?$"  # holds the day accounts were made
)


def unpack(engine: str, sif: Path, folder: Path) -> Path:
    """Unpack the files of a SIF's system partition into a folder, which is made if needed."""
    folder.mkdir(exist_ok=True)
    listing = run([engine, "sif", "list", sif]).stdout
    match = re.search(r"\|(\d+)-\d+\s+\|FS \(Squashfs/\*System", listing)
    assert match, listing
    return _unsquashed(sif.resolve(), int(match[1]), folder / sif.stem)


def _unsquashed(file: Path, offset: int, target: Path) -> Path:
    done = run(["unsquashfs", "-no-progress", "-offset", offset, "-dest", target, file])
    assert done.returncode == 0, done.stderr
    return target


def extracted(sif: Path, folder: Path) -> list[Path]:
    """Copy each partition of a SIF to a file."""
    layers = []
    for number, part in enumerate(sif_file.partitions(sif)):
        layers.append(folder / f"{number}.sqfs")
        sif_file.extract(sif, part, layers[-1])
    return layers


def unpack_stack(sif: Path, target: Path) -> Path:
    """Unpack all partitions of a layered SIF, one over the other."""
    target.mkdir()
    layers = extracted(sif, target)
    how = PackOptions(compression="zstd", log=target / "log")
    packed = flatten(layers, target, how, work_dir=target)
    return _unsquashed(packed.squashfs, 0, target / "tree-of-all")


def describe(tree: Path) -> dict[str, tuple[object, ...]]:
    """Return path -> type, mode, owner and content, for everything in the tree."""
    results: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(tree):
        for name in (*folders, *files):
            path = tree.__class__(folder, name)
            status = path.lstat()
            key = str(path.relative_to(tree))
            owner = (status.st_mode, status.st_uid, status.st_gid)
            results[key] = (*owner, _content(path, status, key))
    return results


def _content(path: Path, status: os.stat_result, key: str) -> object:
    if stat.S_ISLNK(status.st_mode):
        return str(path.readlink())
    if not stat.S_ISREG(status.st_mode) or VOLATILE.search(key):
        return ""
    data = path.read_bytes()
    # The header of bytecode holds the time its source was written; the code must be the same.
    return marshal.loads(data[16:]) if path.suffix == ".pyc" else hashlib.sha256(data).hexdigest()  # noqa: S302  # our own images


def differences(left: Path, other: Path) -> list[str]:
    """Return the paths that are in one tree only, or differ."""
    first, second = describe(left), describe(other)
    only = sorted(first.keys() ^ second.keys())
    return only + sorted(
        path for path in first.keys() & second.keys() if first[path] != second[path]
    )


def nested(folders: int) -> str:
    """Return a Python program that nests so many folders; a path would be too long."""
    return f"import os; [(os.mkdir('d'), os.chdir('d')) for _ in range({folders})]"
