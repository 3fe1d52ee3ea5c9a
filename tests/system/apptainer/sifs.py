"""Partitions and keys for SIFs that the real engine runs: small, and made without network."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sifwright.images.sif.write_sif import Partition
from sifwright.make_image.pack_layers.pack import squash_command
from tests.conftest import run
from tests.system.apptainer.steps import make_root

if TYPE_CHECKING:
    from pathlib import Path


def keys(folder: Path) -> tuple[Path, Path]:
    """Make a private and a public key as PEM files."""
    private, public = folder / "private.pem", folder / "public.pem"
    for words in (
        ["genpkey", "-algorithm", "ed25519", "-out", private],
        ["pkey", "-in", private, "-pubout", "-out", public],
    ):
        done = run(["openssl", *words])
        assert done.returncode == 0, done.stderr
    return private, public


def system(folder: Path) -> Partition:
    return pack(make_root(folder / "system"), is_system=True)


def layer(folder: Path, files: dict[str, str], *, removed: tuple[str, ...] = ()) -> Partition:
    """Make a layer of files (path -> text) that hides other paths."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return pack(folder, removed=removed)


def pack(
    tree: Path,
    *,
    is_system: bool = False,
    removed: tuple[str, ...] = (),
    compression: str = "gzip",
) -> Partition:
    """Make a partition with the name of the tree's folder."""
    target = tree.with_suffix(".sqfs")
    tree.mkdir(exist_ok=True)
    whiteouts = [word for path in removed for word in ("-p", f"{path} c 644 0 0 0 0")]
    done = run([*squash_command(target, compression, tree), "-all-root", *whiteouts])
    assert done.returncode == 0, done.stderr
    sha256 = hashlib.sha256(target.read_bytes()).hexdigest()
    return Partition(path=target, name=tree.name, is_system=is_system, sha256=sha256)
