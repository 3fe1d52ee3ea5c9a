"""The mirrors in this machine's apt configuration."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from functools import cache

from sifwright.system import processes, threads

# Debian's archives by their names in the mirrors file: a machine has a mirror of each.
DEBIAN, SECURITY = "debian", "debian-security"
_LABELS = {"Debian": DEBIAN, "Debian-Security": SECURITY}


def mirror(archive: str) -> str:
    return start_apt().result().get(archive, "")


def start_apt() -> Future[Mapping[str, str]]:
    """Ask apt for its archives in a thread: without a cache, it reads its lists for a second."""
    return _ask_once(shutil.which("apt-get") or "")


@cache
def _ask_once(program: str) -> Future[Mapping[str, str]]:
    return threads.start(lambda: dict(reversed(list(_archives(program)))) if program else {})


def _archives(program: str) -> Iterator[tuple[str, str]]:
    """Yield each archive of Debian that apt knows, with its address, in apt's order."""
    fields = "$(REPO_URI)|$(LABEL)|$(ORIGIN)"
    command = [program, "indextargets", "--format", fields, "Created-By: Packages"]
    # It ends without an answer where TMPDIR is read-only.
    env = os.environ | {"TMPDIR": tempfile.gettempdir()}
    for line in processes.capture(command, env=env).stdout.splitlines():
        address, label, origin = line.split("|")
        # A password would end up in the image.
        is_archive = label in _LABELS and origin == "Debian" and not re.search("[@?]", address)
        if is_archive and address.startswith(("http://", "https://")):
            yield _LABELS[label], address.rstrip("/")
