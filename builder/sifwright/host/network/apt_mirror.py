"""The mirrors in this machine's apt configuration."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache

from sifwright.errors import MachineError
from sifwright.system import cache_folder, processes

# Debian's archives by their names in the mirrors file: a machine has a mirror of each.
DEBIAN, SECURITY = "debian", "debian-security"
_CACHE = "apt-pkgcache.bin"
_LABELS = {"Debian": DEBIAN, "Debian-Security": SECURITY}


def mirror(archive: str) -> str:
    program = shutil.which("apt-get")
    return _ask_once(program).get(archive, "") if program else ""


@cache
def _ask_once(program: str) -> Mapping[str, str]:
    return dict(reversed(list(_archives(program))))


def _archives(program: str) -> Iterator[tuple[str, str]]:
    """Yield each archive of Debian that apt knows, with its address, in apt's order."""
    fields = "$(REPO_URI)|$(LABEL)|$(ORIGIN)"
    command = [program, "indextargets", "--format", fields, "Created-By: Packages"]
    # Debian's images for containers have apt's own cache off: it reads its lists for a second then.
    with suppress(MachineError):  # there may be no home folder
        command += ["-o", f"Dir::Cache::pkgcache={cache_folder.root() / _CACHE}"]
    # It ends without an answer where TMPDIR is read-only.
    env = os.environ | {"TMPDIR": tempfile.gettempdir()}
    for line in processes.capture(command, env=env).stdout.splitlines():
        address, label, origin = line.split("|")
        # A password would end up in the image.
        is_archive = label in _LABELS and origin == "Debian" and not re.search("[@?]", address)
        if is_archive and address.startswith(("http://", "https://")):
            yield _LABELS[label], address.rstrip("/")
