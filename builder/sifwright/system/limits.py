"""Limits of this process: processes and threads, open files, address space, size of a file."""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
_OF_SHELL = {
    "ulimit -n": (resource.RLIMIT_NOFILE, "ulimit -n"),
    "ulimit -v": (resource.RLIMIT_AS, "ulimit -v unlimited"),
    "ulimit -f": (resource.RLIMIT_FSIZE, "ulimit -f unlimited"),
}


class Limit(NamedTuple):
    """A limit, the part of it that is taken, and its name as a person sets it."""

    value: int
    taken: int
    name: str
    fix: str

    @property
    def left(self) -> int:
        return max(0, self.value - self.taken)


def processes() -> Iterator[Limit]:
    """Yield the limits of processes and threads: of the user, and of the control groups."""
    # The kernel exempts root (setrlimit(2), RLIMIT_NPROC).
    if (value := _soft(resource.RLIMIT_NPROC)) is not None and os.getuid() != 0:
        fix = "Raise it (ulimit -u), or end other programs of yours."
        yield Limit(value, _tasks(os.getuid()), "ulimit -u", fix)
    for folder in _control_groups():
        with suppress(OSError, ValueError):
            value, taken = (
                int((folder / f"pids.{name}").read_text(encoding="utf-8"))
                for name in ("max", "current")
            )
            fix = "Ask for more (TasksMax of systemd, --pids-limit of a container)."
            yield Limit(value, taken, str(folder / "pids.max"), fix)


def of_shell(command: str) -> Iterator[Limit]:
    """Yield the limit that a command of the shell sets, if there is one."""
    number, fix = _OF_SHELL[command]
    if (value := _soft(number)) is not None:
        yield Limit(value, 0, command, f"Raise it ({fix}).")


def _soft(number: int) -> int | None:
    value = resource.getrlimit(number)[0]
    return None if value == resource.RLIM_INFINITY else value


def _tasks(user: int) -> int:
    """Count the processes and threads of a user; those that end meanwhile are none."""
    count = 0
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError):
            count += len(list((folder / "task").iterdir())) if folder.stat().st_uid == user else 0
    return count


def _control_groups() -> Iterator[Path]:
    """Yield our control groups that may limit processes, and those above them (cgroups(7))."""
    with suppress(OSError):
        for line in (PROC / "self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in {"", "pids"}:
                root = CGROUPS / controllers
                group = root / path.lstrip("/")
                yield from (path for path in (group, *group.parents) if path.is_relative_to(root))
