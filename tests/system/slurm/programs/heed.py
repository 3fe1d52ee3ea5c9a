"""Writes down which signals came; SIGTERM and SIGINT end it, with exit codes of its own.

It writes the files RANK.ready and RANK.NAME into the folder that is its argument.

It ends as a training does, some time after its handler asked, and ignores the signal from
then on. Otherwise a second copy of the signal may kill it as Python ends. Slurm signals every
process of a step, and Apptainer passes its signal on.
"""

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

FOLDER, RANK = Path(sys.argv[1]), os.environ["RANK"]
CODES = {signal.SIGTERM: 44, signal.SIGINT: 45}
came: list[signal.Signals] = []


def heed(number: int, _frame: FrameType | None) -> None:
    came.append(signal.Signals(number))


for caught in (signal.SIGUSR1, signal.SIGUSR2, *CODES):
    signal.signal(caught, heed)
(FOLDER / f"{RANK}.ready").touch()
end = time.monotonic() + 600
while time.monotonic() < end:
    time.sleep(0.1)
    for which in tuple(came):
        (FOLDER / f"{RANK}.{which.name}").touch()
        if which in CODES:
            signal.signal(which, signal.SIG_IGN)
            sys.exit(CODES[which])
