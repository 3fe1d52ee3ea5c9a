"""Which tests may run beside each other, in the processes of pytest-xdist."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

# The cluster's tests begin with the build of the image, beside tests that need none. Then what
# takes longest: at the end, the other processes would wait for it.
_FIRST = (
    "tests/system/slurm/",
    "tests/unit/",
    "tests/runscripts/",
    "tests/tooling/",
    "tests/system/apptainer/test_mpi_images.py",
    "tests/system/apptainer/test_by_hand.py",
    "tests/system/apptainer/",
    "tests/system/native/",
    "tests/system/packages/",
)


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """One process runs the tests of a file, which share what takes long to make."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def group(name: str) -> str:
    """What runs in one process: the tests of a file, and all that need the one cluster."""
    file = name.partition("::")[0]
    return "tests/system/slurm/" if file.startswith("tests/system/slurm/") else file


def turn(name: str) -> int:
    turns = (number for number, start in enumerate(_FIRST) if name.startswith(start))
    return next(turns, len(_FIRST))
