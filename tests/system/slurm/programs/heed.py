"""Writes down which signals came; SIGTERM and SIGINT end it, with exit codes of its own.

heed.py FOLDER: there, the files RANK.ready and RANK.NAME.

It ends the way a training does, some time after its handler asked for it, and ignores the signal
from then on. One that does not may die of its second copy as Python ends: Slurm signals every
process of a step, and Apptainer, being one of them, passes it on.
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


for one in (signal.SIGUSR1, signal.SIGUSR2, *CODES):
    signal.signal(one, heed)
(FOLDER / f"{RANK}.ready").touch()
end = time.monotonic() + 600
while time.monotonic() < end:
    time.sleep(0.1)
    for which in tuple(came):
        (FOLDER / f"{RANK}.{which.name}").touch()
        if which in CODES:
            signal.signal(which, signal.SIG_IGN)
            sys.exit(CODES[which])
