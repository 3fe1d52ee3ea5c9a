"""The files that pip installed, each package by the digest of its RECORD."""

import posixpath
from collections.abc import Mapping
from pathlib import Path

from sifwright.make_image.attest.properties import PLACE, RECORD
from sifwright.make_image.attest.write_statements import SBOM
from sifwright.system import small_file
from sifwright.system.terminal import first_names

_SHOWN = 5


def digests(folder: Path) -> dict[str, str]:
    """Return the sha256 of each RECORD, by the folder of the package's metadata in the image.

    They are those of the SBOM in `folder`; without an SBOM there are none.
    """
    try:
        bill = small_file.read_json(folder / SBOM)
    except FileNotFoundError:
        return {}
    packages = (
        {item["name"]: item["value"] for item in component.get("properties", ())}
        for component in bill.get("components", ())
    )
    return {item[PLACE]: item[RECORD] for item in packages if RECORD in item}


def difference(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return a line with the packages that have other files at the same version, or nothing."""
    changed = [
        posixpath.basename(folder).removesuffix(".dist-info")
        for folder, digest in now.items()
        if before.get(folder, digest) != digest
    ]
    if not changed:
        return ""
    names = first_names(changed, _SHOWN)
    return f"other files than in the image before, at the same version: {names}"
