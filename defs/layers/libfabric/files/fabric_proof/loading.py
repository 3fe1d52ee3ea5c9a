"""Open libraries as the loader would for another library, and see what a process has mapped."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path

from fabric_proof import elf

__all__ = ["mapped", "open_for", "path_of"]

_LINK_MAP = 2  # RTLD_DI_LINKMAP of <dlfcn.h>


class _LinkMap(ctypes.Structure):
    _fields_ = (("l_addr", ctypes.c_void_p), ("l_name", ctypes.c_char_p))


def mapped(pattern: str) -> list[str]:
    """Return the libraries of this process whose file name matches, each once."""
    lines = Path("/proc/self/maps").read_text(errors="replace", encoding="utf-8").splitlines()
    files = {line.split(maxsplit=5)[5] for line in lines if "/" in line}
    return sorted(file for file in files if re.fullmatch(pattern, os.path.basename(file)))  # noqa: PTH119


def open_for(caller: str, name: str) -> ctypes.CDLL:
    """Open a library by a name that `caller` gives, from where the loader would take it.

    Raises `OSError` with the loader's own words.
    """
    if "/" not in name:
        for folder in elf.read(caller).folders():
            if Path(folder, name).exists():
                return ctypes.CDLL(str(Path(folder, name)), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    # The rest of the loader's order is the same for all callers: its cache, the system's folders.
    return ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_LOCAL)


def path_of(library: ctypes.CDLL) -> str:
    """Return the file of an opened library."""
    link_map = ctypes.POINTER(_LinkMap)()
    handle = ctypes.c_void_p(library._handle)  # noqa: SLF001  # the standard way to ask dlinfo()
    ctypes.CDLL(None).dlinfo(handle, _LINK_MAP, ctypes.byref(link_map))
    name: bytes = link_map.contents.l_name or b""
    return str(Path(name.decode()).resolve())
