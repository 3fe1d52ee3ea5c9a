"""Checks of the limits of processes, open files, address space and file size."""

from collections.abc import Iterable, Iterator

from sifwright.errors import MachineError, Problem
from sifwright.system import limits
from sifwright.system.limits import Limit

# For a container, Apptainer 1.4.5 needs 24 processes and threads, 24 files, 2 GB of addresses
# (tried on two cores). A build adds our threads, mksquashfs and the step's processes.
_PROCESSES, _FILES, _ADDRESSES = 100, 256, 4 * 10**9


def require() -> None:
    """Raise `MachineError` if the limits are too low: not even other checks could run."""
    if too_low := list(problems()):
        raise MachineError(*too_low)


def problems() -> Iterator[Problem]:
    yield from _too_low(limits.processes(), _PROCESSES, "processes and threads")
    yield from _too_low(limits.of_shell("ulimit -n"), _FILES, "open files")
    yield from _too_low(limits.of_shell("ulimit -v"), _ADDRESSES, "bytes of address space")


def file_size_problems(size: int) -> Iterator[Problem]:
    """Yield a problem if no file may have as many bytes, as the image will."""
    yield from _too_low(limits.of_shell("ulimit -f"), size, "bytes in one file")


def _too_low(all_limits: Iterable[Limit], needed: int, unit: str) -> Iterator[Problem]:
    for limit in all_limits:
        if limit.left < needed:
            taken = f", of which {limit.taken} are taken" if limit.taken else ""
            message = f"the limit is {limit.value}{taken}; a build needs {needed} {unit}"
            yield Problem(where=limit.name, what=message, fix=limit.fix)
