"""The mirrors in this machine's apt configuration, remembered until its settings change.

To ask apt takes half a second, more than all the rest that a build with nothing to do takes.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.system import digest_cache, fact_cache, processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Debian's archives by their names in the mirrors file: a machine has a mirror of each.
DEBIAN, SECURITY = "debian", "debian-security"
# apt.conf(5), sources.list(5), and what archives say of themselves.
SETTINGS, LISTS = Path("/etc/apt"), Path("/var/lib/apt/lists")
_FILE = "debian-mirrors.json"
_LABELS = {"Debian": DEBIAN, "Debian-Security": SECURITY}


def mirror(archive: str) -> str:
    """Return the first mirror of an archive in this machine's apt configuration, or nothing."""
    program = shutil.which("apt-get")
    return _mirrors(program).get(archive, "") if program else ""


def _mirrors(program: str) -> Mapping[str, str]:
    if os.environ.get("APT_CONFIG"):  # settings that may be anywhere are not remembered
        return _ask(program)
    settings = dict(_settings(Path(program)))
    known = fact_cache.read(_FILE)
    if known.get("settings") == settings:
        return dict(known["mirrors"])
    mirrors = _ask_once(program, tuple(settings.items()))
    fact_cache.write(_FILE, {"settings": settings, "mirrors": mirrors})
    return mirrors


@cache
def _ask_once(program: str, _settings: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the answer to these settings, for a process that has no cache on disk yet."""
    return _ask(program)


def _settings(program: Path) -> Iterator[tuple[str, str]]:
    for path in (program, LISTS, SETTINGS, *sorted(SETTINGS.rglob("*"))):
        with suppress(OSError):
            yield str(path), digest_cache.identity(path.stat())


def _ask(program: str) -> dict[str, str]:
    """Return the first address of each archive of Debian that apt knows."""
    return dict(reversed(list(_archives(program))))


def _archives(program: str) -> Iterator[tuple[str, str]]:
    """Yield each archive of Debian that apt knows, with its address, in apt's order."""
    fields = "$(REPO_URI)|$(LABEL)|$(ORIGIN)"
    answer = processes.capture(
        [program, "indextargets", "--format", fields, "Created-By: Packages"]
    )
    for line in answer.stdout.splitlines():
        address, label, origin = line.split("|")
        # A password would end up in the image.
        is_archive = label in _LABELS and origin == "Debian" and not re.search("[@?]", address)
        if is_archive and address.startswith(("http://", "https://")):
            yield _LABELS[label], address.rstrip("/")
