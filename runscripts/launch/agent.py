"""torchrun as conda-python-distributed --nproc-per-node runs it, in the Python that has torch.

torchrun itself dies of SIGUSR1 and SIGUSR2, with which schedulers and users ask for a checkpoint;
turns every exit status of a rank into 1; and prints a traceback when a job is cancelled.
"""

import contextlib
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Iterator, NoReturn, Optional

FORWARDED = (signal.SIGUSR1, signal.SIGUSR2)
SIGNAL_STATUS = 128  # a shell's exit status for the end by signal n: 128 + n


def ranks() -> "Iterator[int]":
    """Yield the process ids of the ranks, which are the agent's children."""
    for thread in os.listdir("/proc/self/task"):
        with open("/proc/self/task/{}/children".format(thread), encoding="ascii") as children:
            yield from map(int, children.read().split())


def forward(number: int, _frame: "Optional[FrameType]") -> None:
    for rank in ranks():
        with contextlib.suppress(ProcessLookupError):  # it ended just now
            os.kill(rank, number)


def status_of(code: int) -> int:
    """Turn subprocess's exit code, where a negative one is a signal, into a shell's."""
    return code if code >= 0 else SIGNAL_STATUS - code


def main() -> "NoReturn":
    """Run the ranks; end with the exit status of the first rank that failed."""
    for number in FORWARDED:
        signal.signal(number, forward)
    from torch.distributed import run  # noqa: PLC0415  # after the handlers: it takes a second
    from torch.distributed.elastic.multiprocessing import SignalException  # noqa: PLC0415
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError  # noqa: PLC0415

    try:
        run.main()
    except ChildFailedError as error:
        sys.stderr.write("{}\n".format(error))
        sys.exit(status_of(error.get_first_failure()[1].exitcode))
    except SignalException as error:
        sys.exit(SIGNAL_STATUS + error.sigval)
    sys.exit(0)


if __name__ == "__main__":
    main()
