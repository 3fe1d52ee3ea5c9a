"""Look at a job as people do: the step that runs, and the end of its log."""

import os
import re
from contextlib import suppress
from pathlib import Path

from sifwright.launch.submit.job_folder import SubmittedJob
from sifwright.launch.submit.schedulers import FAILED, RUNNING
from sifwright.system import step_file
from sifwright.system.step_file import RunningStep
from sifwright.system.terminal import strip_control_characters

# The name in the job script.
_STEP = "step"
_TAIL_BYTES = 8192
# A line of the flux that runs a job's script.
_OF_FLUX = re.compile(r" broker\.err\[[0-9]+\]: ")


def running_step(job: SubmittedJob) -> RunningStep | None:
    """Return the step that runs; None if no step does."""
    return step_file.read(Path(job.folder) / _STEP) if job.state == RUNNING else None


def last_line(job: SubmittedJob) -> str:
    """Return the last line of the log; nothing if it has none."""
    told: list[str] = []
    with suppress(OSError):
        lines = map(str.strip, _tail(Path(job.log)).splitlines())
        told = [line for line in lines if line and not _OF_FLUX.search(line)]
    return told[-1] if told else _missing(job)


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        return strip_control_characters(file.read().decode(errors="replace"))


def _missing(job: SubmittedJob) -> str:
    """Return the likely reason why a failed job has written nothing."""
    if job.state != FAILED or job.reason:
        return ""
    return f"no log: its node may not see {Path(job.log).parent}"
