"""The Debian mirror of this machine's apt, remembered until apt's settings are others.

To ask apt takes half a second, more than all the rest that a build with nothing to do takes.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import digests, memory, runner

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["debian_mirror"]

# apt.conf(5), sources.list(5), and what archives say of themselves.
SETTINGS, LISTS = Path("/etc/apt"), Path("/var/lib/apt/lists")
_FILE = "debian-mirror.json"


def debian_mirror() -> str:
    """The first Debian mirror in this machine's apt configuration, or nothing."""
    program = shutil.which("apt-get")
    if program is None:
        return ""
    # Settings that may be anywhere are not remembered.
    settings = {} if os.environ.get("APT_CONFIG") else dict(_settings(Path(program)))
    known = memory.read(_FILE)
    if settings and known.get("settings") == settings:
        return str(known["mirror"])
    mirror = _ask(program)
    if settings:
        memory.write(_FILE, {"settings": settings, "mirror": mirror})
    return mirror


def _settings(program: Path) -> Iterator[tuple[str, str]]:
    for path in (program, LISTS, SETTINGS, *sorted(SETTINGS.rglob("*"))):
        with suppress(OSError):
            yield str(path), digests.identity(path.stat())


def _ask(program: str) -> str:
    fields = "$(REPO_URI)|$(LABEL)|$(ORIGIN)"
    answer = runner.capture([program, "indextargets", "--format", fields, "Created-By: Packages"])
    for line in answer.stdout.splitlines():
        address, label, origin = line.split("|")
        # The security archive has another label. A password would end up in the image.
        is_archive = (label, origin) == ("Debian", "Debian") and not re.search("[@?]", address)
        if is_archive and address.startswith(("http://", "https://")):
            return address.rstrip("/")
    return ""
