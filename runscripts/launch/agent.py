"""torchrun as conda-python-distributed --nproc-per-node runs it, in the Python that has torch.

Schedulers and users ask for a checkpoint by SIGUSR1 or SIGUSR2, and both end torchrun itself. It
also turns every exit status of a rank into 1, and prints a traceback when a job is cancelled.
"""

import contextlib
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, ModuleType
    from typing import Iterator, NoReturn, Optional

FORWARDED = (signal.SIGUSR1, signal.SIGUSR2)
RANKS_PATH = "SIFWRIGHT_RANKS_PYTHONPATH"
HANDLER = "_terminate_process_handler"
SIGNAL_STATUS = 128  # a shell's exit status for the end by signal n: 128 + n


def ranks() -> "Iterator[int]":
    """Yield the process ids of the ranks, which are the agent's children."""
    for thread in os.listdir("/proc/self/task"):
        try:
            # Text would import a codec. A second signal during the import raises LookupError.
            with open("/proc/self/task/{}/children".format(thread), "rb") as children:
                yield from map(int, children.read().split())
        except OSError:  # the thread has ended just now
            continue


def forward(number: int, _frame: "Optional[FrameType]") -> None:
    for rank in ranks():
        with contextlib.suppress(ProcessLookupError):  # it ended just now
            os.kill(rank, number)


def heed_once(api: "ModuleType") -> None:
    """Let torch heed the first signal to stop only.

    A batch job gets each signal twice, from Slurm and through Apptainer. The second one would end
    torch while it stops the ranks. No handler is changed meanwhile: Python would
    print that a signal was ignored due to a race.
    """
    stop = getattr(api, HANDLER, None)  # there is no public way
    if stop is None:
        return

    heard: "list[int]" = []

    def first(number: int, frame: "Optional[FrameType]") -> None:
        if not heard:
            heard.append(number)
            stop(number, frame)

    setattr(api, HANDLER, first)


def status_of(code: int) -> int:
    """Turn subprocess's exit code, where a negative one is a signal, into a shell's."""
    return code if code >= 0 else SIGNAL_STATUS - code


def main() -> "NoReturn":
    """Run the ranks; end with the exit status of the first rank that failed."""
    for number in FORWARDED:
        signal.signal(number, forward)
    if RANKS_PATH in os.environ:  # for the ranks alone: see guarding
        os.environ["PYTHONPATH"] = os.environ.pop(RANKS_PATH)
    from torch.distributed import run  # noqa: PLC0415  # after the handlers: it takes a second
    from torch.distributed.elastic.multiprocessing import SignalException, api  # noqa: PLC0415
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError  # noqa: PLC0415

    heed_once(api)
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
