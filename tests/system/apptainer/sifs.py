"""Squashfs files and keys for SIFs that the real engine runs: small, and made without network."""

from __future__ import annotations

import hashlib
import re
import shutil
from typing import TYPE_CHECKING

from sifwright.images.sif.write_sif import Partition
from tests.conftest import run

if TYPE_CHECKING:
    from pathlib import Path

PROGRAMS = ("dash", "cat", "ls")
FOLDERS = ("bin", "dev", "etc", "proc", "root", "sys", "tmp", "var/tmp")


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
    """Make the smallest system with a shell: programs of this machine and their libraries."""
    tree = folder / "system"
    for name in FOLDERS:
        (tree / name).mkdir(parents=True)
    for name in PROGRAMS:
        program = shutil.which(name)
        assert program is not None
        shutil.copy(program, tree / "bin" / name)
        for library in re.findall(r"/\S+", run(["ldd", program]).stdout):
            (tree / library[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, tree / library[1:])
    (tree / "bin" / "sh").symlink_to("dash")
    for name in ("passwd", "group", "hosts", "resolv.conf", "localtime"):
        (tree / "etc" / name).touch()
    return pack(tree, is_system=True)


def layer(folder: Path, files: dict[str, str], *, removed: tuple[str, ...] = ()) -> Partition:
    """Make a layer of files (path -> text) that hides other paths."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return pack(folder, removed=removed)


def pack(tree: Path, *, is_system: bool = False, removed: tuple[str, ...] = ()) -> Partition:
    target = tree.with_suffix(".sqfs")
    tree.mkdir(exist_ok=True)
    whiteouts = [word for path in removed for word in ("-p", f"{path} c 644 0 0 0 0")]
    times = ["-mkfs-time", "0", "-all-time", "0", "-all-root"]
    done = run(["mksquashfs", tree, target, "-noappend", "-no-progress", *times, *whiteouts])
    assert done.returncode == 0, done.stderr
    sha256 = hashlib.sha256(target.read_bytes()).hexdigest()
    return Partition(path=target, name=tree.name, is_system=is_system, sha256=sha256)
