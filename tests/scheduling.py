"""Groups of tests that may run at the same time, in the processes of pytest-xdist."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

# The cluster's tests begin with the build of the image, beside tests that need none. Then what
# takes longest: at the end, the other processes would wait for it.
_FIRST = (
    "tests/system/slurm/",
    "tests/system/apptainer/test_mpi_images.py",
    "tests/unit/",
    "tests/runscripts/",
    "tests/tooling/",
    "tests/system/apptainer/",
    "tests/system/native/",
    "tests/system/packages/",
)
# The cluster is one, and these images are built once.
_OF_CLUSTER = ("tests/system/slurm/", "tests/system/apptainer/test_mpi_images.py")


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """One process runs the tests of a file, which share what takes long to make."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def group(name: str) -> str:
    """Return the group of a process: the tests of a file, or of a cluster and images."""
    file = name.partition("::")[0]
    return _OF_CLUSTER[0] if file.startswith(_OF_CLUSTER) else file


def turn(name: str) -> int:
    turns = (number for number, start in enumerate(_FIRST) if name.startswith(start))
    return next(turns, len(_FIRST))
