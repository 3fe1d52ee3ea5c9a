"""Run a command as root of a new user namespace that has subordinate ids.

user_namespace.py starts it:

    python -I -S map_ids.py UID GID COUNT COMMAND…

UID and GID are the first of COUNT subordinate ids, which become 1 and up; 0 is the user. The
command `unshare --map-root-user --map-auto` of util-linux 2.38 does the same (its
sys-utils/unshare.c). This program is for older releases. It calls newuidmap(1) and newgidmap(1).

Exit status: the command's; 1 with a line on standard error if there is no such namespace.
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

# sched.h; os.unshare comes with Python 3.12 only.
_CLONE_NEWUSER = 0x10000000


def main(arguments: Sequence[str]) -> NoReturn:
    """Become the command."""
    uid, gid, count, *command = arguments
    # Only from outside can the maps be written, and only once the namespace is there.
    ready, make = os.pipe()
    mapper = os.fork()
    if mapper == 0:
        os.close(make)
        is_made = os.read(ready, 1) != b""
        os._exit(_map(os.getppid(), (uid, gid), count) if is_made else 1)
    # The process must have one thread (unshare(2)).
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER) != 0:
        sys.exit(f"no user namespace can be made: {os.strerror(ctypes.get_errno())}")
    os.write(make, b"!")
    _, status = os.waitpid(mapper, 0)
    if status != 0:
        sys.exit(1)  # the mapper has said why
    os.close(ready)
    os.close(make)
    try:
        os.execvp(command[0], command)  # noqa: S606  # a list of arguments, as everywhere
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


def _map(process: int, first: tuple[str, str], count: str) -> int:
    """Write the maps of the process; returns 1 if that failed, and the reason has been said."""
    own = str(os.geteuid()), str(os.getegid())
    for program, outside, start in zip(("newuidmap", "newgidmap"), own, first, strict=True):
        command = [program, str(process), "0", outside, "1", "1", start, count]
        try:
            status = subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode
        except OSError as error:
            sys.stderr.write(f"{program}: {error.strerror}\n")
            status = 1
        if status != 0:
            return 1
    return 0


if __name__ == "__main__":
    main(sys.argv[1:])
