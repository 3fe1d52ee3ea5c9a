"""The kernel's register of interpreters for programs of other processors (binfmt_misc)."""

import os
import re
import shutil
import struct
from pathlib import Path

from sifwright.system.processes import search_path

REGISTER = Path("/proc/sys/fs/binfmt_misc")
# e_machine of elf(5), by the kernel's name of the processor.
MACHINES = {"x86_64": 62, "aarch64": 183}
# A user namespace has a register of its own since then (fs/binfmt_misc.c).
KERNEL = (6, 7)


def registers(processor: str) -> bool:
    """Tell whether programs of this processor run here, in containers too (flag F)."""
    entries = (path for path in REGISTER.glob("*") if path.name not in {"register", "status"})
    return any(_fits(path.read_text(encoding="utf-8"), processor) for path in entries)


def _fits(entry: str, processor: str) -> bool:
    """Tell whether an entry is for a processor, from the text that the kernel shows."""
    code = MACHINES[processor].to_bytes(2, "little").hex()
    magic = re.search(r"^magic 7f454c46(?:[0-9a-f]{28})([0-9a-f]{4})", entry, re.MULTILINE)
    flags = re.search(r"^flags: \w*F", entry, re.MULTILINE)
    return entry.startswith("enabled") and magic is not None and magic[1] == code and bool(flags)


def line(processor: str, emulator: str) -> bytes:
    """Return the line that registers an emulator; the kernel opens it at once (flag F)."""
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<2H", 2, MACHINES[processor])
    # Programs and shared objects, of any ABI: e_type 2 and 3, EI_OSABI.
    mask = b"\xff" * 7 + b"\x00" + b"\xff" * 8 + b"\xfe\xff" + b"\xff\xff"
    magic, masked = ("".join(f"\\x{byte:02x}" for byte in part) for part in (head, mask))
    return f":sifwright-{processor}:M::{magic}:{masked}:{emulator}:OCF".encode()


def emulator(processor: str) -> str:
    """Return the path of QEMU's static program for a processor; nothing if there is none.

    A dynamic one would look for its libraries in the container.
    """
    for name in (f"qemu-{processor}-static", f"qemu-{processor}"):
        path = shutil.which(name, path=search_path())
        if path and _is_static(Path(path)):
            return path
    return ""


def _is_static(program: Path) -> bool:
    """Tell whether a program names no loader; its path is in the first page (elf(5), PT_INTERP)."""
    with program.open("rb") as file:
        return b"/ld-" not in file.read(4096)


def kernel() -> tuple[int, ...]:
    """Return the release of the running kernel, as in (6, 12)."""
    return tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])
