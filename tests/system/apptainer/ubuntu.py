"""Ubuntu 24.04, made by debootstrap from the archive beside this machine's mirror of Debian."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import MachineError
from sifwright.host.network import debian_archive
from sifwright.host.network.apt_mirror import DEBIAN, mirror
from tests.conftest import run
from tests.system.apptainer.toys import succeeded

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ARCHIVE", "SECURITY", "make_system", "rules"]

ARCHIVE = "http://archive.ubuntu.com/ubuntu"
SECURITY = "http://security.ubuntu.com/ubuntu"
SUITE, COMPONENTS = "noble", "main,universe"
# An older debootstrap does not know the suite, which is made as every suite of Ubuntu.
SCRIPT = "/usr/share/debootstrap/scripts/gutsy"
# The file in Ubuntu's own image.
SOURCES = """Types: deb
URIs: {archive}/
Suites: {suites}
Components: main universe restricted multiverse
Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg
"""


def rules() -> dict[str, str]:
    """Return the rules that lead Ubuntu's archives to this machine's; skip where it has none."""
    beside = mirror(DEBIAN).rstrip("/").removesuffix(DEBIAN) + "ubuntu"
    for address in (debian_archive.address(ARCHIVE), beside, ARCHIVE):
        try:
            if address and debian_archive.release(address, SUITE).date:
                return {ARCHIVE: address, SECURITY: address}
        except MachineError:
            continue
    pytest.skip("no archive of Ubuntu answers")


def make_system(folder: Path, *packages: str) -> Path:
    """Make a system with these packages, whose sources are those of the image of Ubuntu."""
    if os.geteuid() != 0:
        pytest.skip("debootstrap is for root")
    words = ["debootstrap", "--variant=minbase", "--no-check-gpg", f"--components={COMPONENTS}"]
    words += [f"--include={','.join(packages)}"] if packages else []
    words += [SUITE, str(folder), rules()[ARCHIVE], SCRIPT]
    # In a mount namespace of its own no /proc stays mounted if debootstrap is killed.
    succeeded(run(["unshare", "--mount", *words]))
    (folder / "etc/apt/sources.list").unlink()
    sources = (
        SOURCES.format(archive=ARCHIVE, suites=f"{SUITE} {SUITE}-updates"),
        SOURCES.format(archive=SECURITY, suites=f"{SUITE}-security"),
    )
    (folder / "etc/apt/sources.list.d/ubuntu.sources").write_text("\n".join(sources))
    return folder
