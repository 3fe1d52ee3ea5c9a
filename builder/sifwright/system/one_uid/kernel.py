"""System calls that Python has no function for, and what this processor calls them."""

import ctypes
import os
import struct
from pathlib import Path
from typing import Final, NamedTuple

AT_EMPTY_PATH = 0x1000
AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW = 0x100
# Audit architecture (linux/audit.h) and numbers (asm/unistd.h) of each processor.
_NUMBERS = {
    "x86_64": (
        0xC000003E,
        {
            "stat": 4,
            "fstat": 5,
            "lstat": 6,
            "newfstatat": 262,
            "statx": 332,
            "chown": 92,
            "fchown": 93,
            "lchown": 94,
            "fchownat": 260,
            "setgroups": 116,
            "setuid": 105,
            "setgid": 106,
            "setreuid": 113,
            "setregid": 114,
            "setresuid": 117,
            "setresgid": 119,
            "seccomp": 317,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "fstat": 80,
            "newfstatat": 79,
            "statx": 291,
            "fchown": 55,
            "fchownat": 54,
            "setgroups": 159,
            "setuid": 146,
            "setgid": 144,
            "setreuid": 145,
            "setregid": 143,
            "setresuid": 147,
            "setresgid": 149,
            "seccomp": 277,
        },
    ),
}
_ARCHITECTURE, CALLS = _NUMBERS.get(os.uname().machine, (0, {}))
# The same for every processor.
_OPENAT2 = 437
_CLONE_NEWUSER = 0x10000000
_SECCOMP_SET_MODE_FILTER = 1
_NEW_LISTENER = 1 << 3
_RESOLVE_IN_ROOT = 0x10
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
# linux/bpf_common.h: load a word; jump if equal; jump if a bit is set; return.
_LOAD, _JUMP, _JUMP_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
# Offsets in struct seccomp_data: the number, the architecture, and the lower half of statx's mask.
_AT_NUMBER, _AT_ARCHITECTURE, _AT_MASK = 0, 4, 16 + 3 * 8
_STATX_OWNER = 0x08 | 0x10
# Type, mode, links, time of the last change, inode; and where `struct statx` has them.
_STATX_IDENTITY = 0x01 | 0x02 | 0x04 | 0x80 | 0x100
_STATX = struct.Struct("=16xI8xH2xQ56xqI")
_STATX_BYTES = 256
_INSTRUCTION = struct.Struct("<HBBI")
_HANDLE_BYTES = 128
_PAGE: Final = os.sysconf("SC_PAGESIZE")
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def lacks() -> str:
    """Say what this machine lacks for all this; nothing if it has it."""
    machine = os.uname()
    if not CALLS:
        return f"the system calls of {machine.machine} are not known"
    root = os.open("/", os.O_PATH)
    try:
        os.close(open_in(root, b"/", os.O_PATH))
    except OSError as error:
        return f"Linux {machine.release} has no openat2 of Linux 5.6: {error.strerror}"
    finally:
        os.close(root)
    return ""


def call(number: int, *arguments: object) -> int:
    """Make a system call. Raises `OSError`."""
    words = (
        ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments
    )
    return _checked(_LIBC.syscall(ctypes.c_long(number), *words))


def _checked(result: int) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def become_root() -> None:
    """Become root of a new user namespace, which has no other id. Raises `OSError`.

    The process must have one thread.
    """
    uid, gid, own = os.geteuid(), os.getegid(), Path("/proc/self")
    _checked(_LIBC.unshare(_CLONE_NEWUSER))
    (own / "setgroups").write_text("deny", encoding="utf-8")
    (own / "uid_map").write_text(f"0 {uid} 1", encoding="utf-8")
    (own / "gid_map").write_text(f"0 {gid} 1", encoding="utf-8")


def listener(numbers: list[int]) -> int:
    """Have these system calls of this process, and of all it starts, told to a descriptor.

    Calls of 32-bit programs pass, and statx without a wish for the owner. Raises `OSError`;
    seccomp(2) says when.
    """
    code = _filter(numbers)
    program = _Program(len(code) // _INSTRUCTION.size, code)
    flags = _SECCOMP_SET_MODE_FILTER, _NEW_LISTENER
    return call(CALLS["seccomp"], *flags, ctypes.byref(program))


def _filter(numbers: list[int]) -> bytes:
    """Return the program of the filter."""
    others = [number for number in numbers if number != CALLS["statx"]]
    count = len(others)
    lines = [
        (_LOAD, 0, 0, _AT_ARCHITECTURE),
        (_JUMP, 0, count + 2, _ARCHITECTURE),
        (_LOAD, 0, 0, _AT_NUMBER),
        (_JUMP, count + 1, 0, CALLS["statx"]),
        *((_JUMP, count + 3 - at, 0, number) for at, number in enumerate(others)),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _AT_MASK),
        (_JUMP_SET, 1, 0, _STATX_OWNER),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _NOTIFY),
    ]
    return b"".join(_INSTRUCTION.pack(*line) for line in lines)


class Identity(NamedTuple):
    """The identity of a path without its owner: the fields of `os.stat_result` of these names."""

    st_mode: int
    st_nlink: int
    st_ino: int
    st_ctime_ns: int


def identity(path: bytes, folder: int) -> Identity:
    """Read it of a path in a folder, by a call that `listener` lets pass. Raises `OSError`."""
    data = ctypes.create_string_buffer(_STATX_BYTES)
    words = ctypes.c_char_p(path), AT_SYMLINK_NOFOLLOW, _STATX_IDENTITY, data
    call(CALLS["statx"], folder, *words)
    links, mode, inode, seconds, nanoseconds = _STATX.unpack_from(data)
    return Identity(mode, links, inode, seconds * 10**9 + nanoseconds)


def open_in(root: int, path: bytes, flags: int) -> int:
    """Open a path below a folder that is its root, for its links as well. Raises `OSError`."""
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT)
    return call(_OPENAT2, root, ctypes.c_char_p(path), ctypes.c_char_p(how), len(how))


def file_handle(descriptor: int) -> bytes:
    """Return a handle that a later file with the same inode number does not have, or b''."""
    handle = ctypes.create_string_buffer(struct.pack("=Ii", _HANDLE_BYTES, 0), 8 + _HANDLE_BYTES)
    mount = ctypes.c_int()
    words = ctypes.byref(handle), ctypes.byref(mount), ctypes.c_int(AT_EMPTY_PATH)
    if _LIBC.name_to_handle_at(ctypes.c_int(descriptor), b"", *words) != 0:
        return b""
    (size,) = struct.unpack_from("=I", handle.raw)
    return handle.raw[4 : 8 + size]


def memory(process: int, address: int, size: int) -> bytes:
    """Read the memory of a process, up to the first page that is not there. Raises `OSError`."""
    buffer = ctypes.create_string_buffer(size)
    local = _Vector(ctypes.addressof(buffer), size)
    first = min(size, _PAGE - address % _PAGE)
    # Two pieces: a missing page ends the reading between them, not within one.
    remote = (_Vector * 2)(_Vector(address, first), _Vector(address + first, size - first))
    words = ctypes.byref(local), ctypes.c_ulong(1), ctypes.byref(remote), ctypes.c_ulong(2)
    read = _LIBC.process_vm_readv(ctypes.c_int(process), *words, ctypes.c_ulong(0))
    return buffer.raw[: _checked(read)]


def set_memory(process: int, address: int, data: bytes) -> None:
    """Write into the memory of a process. Raises `OSError`."""
    local = _Vector(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value, len(data))
    remote = _Vector(address, len(data))
    words = ctypes.byref(local), ctypes.c_ulong(1), ctypes.byref(remote), ctypes.c_ulong(1)
    _checked(_LIBC.process_vm_writev(ctypes.c_int(process), *words, ctypes.c_ulong(0)))
