"""Writes down when which signal came first; SIGTERM and SIGINT end it, with exit codes of its own.

heed.py FOLDER: there, the files RANK.ready and RANK.NAME, which holds a time.

It ends the way a training does, some time after its handler asked for it. One that leaves Python in
the handler may die of the signal's second copy: Slurm signals every process of a step, and
Apptainer, being one of them, passes it on.
"""

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

FOLDER, RANK = Path(sys.argv[1]), os.environ["RANK"]
CODES = {signal.SIGTERM: 44, signal.SIGINT: 45}
came: dict[signal.Signals, float] = {}


def heed(number: int, _frame: FrameType | None) -> None:
    came.setdefault(signal.Signals(number), time.time())


def write(which: signal.Signals) -> None:
    temporary = FOLDER / f"{RANK}.new"
    temporary.write_text(str(came[which]))
    temporary.replace(FOLDER / f"{RANK}.{which.name}")


for one in (signal.SIGUSR1, signal.SIGUSR2, *CODES):
    signal.signal(one, heed)
(FOLDER / f"{RANK}.ready").touch()
end = time.monotonic() + 60
while time.monotonic() < end:
    time.sleep(0.1)
    for which in tuple(came):
        write(which)
        if which in CODES:
            time.sleep(0.2)
            sys.exit(CODES[which])
