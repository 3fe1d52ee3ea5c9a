"""Folders that are archives of Debian with a few packages."""

import hashlib
import lzma
from pathlib import Path


def make_suite(folder: Path, suite: str, packages: dict[str, str], *, signed: bool = True) -> str:
    """Write the index of a suite, for amd64; return the archive's address."""
    index = folder / "dists" / suite / "main/binary-amd64/Packages.xz"
    index.parent.mkdir(parents=True)
    stanzas = (
        f"Package: {name}\nVersion: {version}\nDescription: Some words,\n on two lines\n"
        for name, version in packages.items()
    )
    index.write_bytes(lzma.compress("\n".join(stanzas).encode()))
    if signed:
        digest = hashlib.sha256(index.read_bytes()).hexdigest()
        text = f"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nSuite: {suite}\n"
        text += "Date: Mon, 23 Nov 2026 11:22:37 UTC\nSHA256:\n"
        text += f" {digest} {index.stat().st_size} main/binary-amd64/Packages.xz\n"
        (folder / "dists" / suite / "InRelease").write_text(
            f"{text}-----BEGIN PGP SIGNATURE-----\n"
        )
    return f"file://{folder}"
