"""The squashfs of files that the builder writes itself."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.model import LayerFile
from sifwright.errors import BuildError
from sifwright.images.sif.copy_data import Range
from sifwright.images.squashfs.join_layers import compression
from sifwright.make_image.pack_layers.pack import PackOptions
from sifwright.make_image.pack_layers.pack_files import pack_files
from tests.system.apptainer.squashed import loop

if TYPE_CHECKING:
    from pathlib import Path

MODES = {"": 0o751, "opt": 0o2775, "opt/a/b": 0o300}
FILES = [
    LayerFile(path="/opt/a/b/text", data=b"line\n" * 100_000, executable=False),
    LayerFile(path="/opt/a/program", data=b"#!/bin/sh\n", executable=True),
    LayerFile(path="/opt/empty", data=b"", executable=False),
    LayerFile(path="/x y\n", data=b"x", executable=False),
]


def _packed(folder: Path, kind: str) -> Path:
    return pack_files(FILES, MODES, folder, PackOptions(compression=kind, log=folder / "log"))


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
@pytest.mark.parametrize("kind", ["zstd", "gzip"])
def test_files_with_owner_modes_and_time(tmp_path: Path, kind: str) -> None:
    target = _packed(tmp_path / "new", kind)
    assert compression(Range(path=target, size=target.stat().st_size)) == kind
    with loop(target, tmp_path / "mounted") as tree:
        nodes = {str(path.relative_to(tree)): path.stat() for path in (tree, *tree.rglob("*"))}
        assert all(
            (node.st_uid, node.st_gid, node.st_mtime) == (0, 0, 1) for node in nodes.values()
        )
        modes = {name: stat.S_IMODE(node.st_mode) for name, node in nodes.items()}
        assert (tree / "opt/a/b/text").read_bytes() == FILES[0].data
    folders = {".": 0o751, "opt": 0o2775, "opt/a": 0o755, "opt/a/b": 0o300}
    files = {"opt/a/b/text": 0o644, "opt/a/program": 0o755, "opt/empty": 0o644, "x y\n": 0o644}
    assert modes == folders | files


def test_mksquashfs_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="mksquashfs of the metadata ended with status"):
        _packed(tmp_path / "new", "lzip")
