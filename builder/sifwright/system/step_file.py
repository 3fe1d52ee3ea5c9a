"""The running step in a file, for a look at a job from another machine."""

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sifwright.system import small_file
from sifwright.system.progress import Progress

# Names the file, in the environment of a job.
VARIABLE = "SIFWRIGHT_STEP_FILE"


class RunningStep(NamedTuple):
    """A step, and the seconds since it began by the clock of its machine."""

    name: str
    seconds: float


class StepFileProgress(Progress):
    """Another reporter, and the file; a file that cannot be written stops no build."""

    def __init__(self, reporter: Progress, file: Path) -> None:
        self._reporter, self._file = reporter, file

    def started(self, step: str) -> None:
        part = self._file.with_suffix(".part")
        with suppress(OSError):
            part.write_text(json.dumps({"step": step, "since": time.time()}), encoding="utf-8")
            part.replace(self._file)
        self._reporter.started(step)

    def finished(self, step: str, state: str, seconds: float) -> None:
        with suppress(OSError):
            self._file.unlink()
        self._reporter.finished(step, state, seconds)

    def output(self, line: str) -> None:
        self._reporter.output(line)

    def note(self, text: str) -> None:
        self._reporter.note(text)


def with_step_file(reporter: Progress) -> Progress:
    """Return the reporter, with the file if the environment names one."""
    file = os.environ.get(VARIABLE, "")
    return StepFileProgress(reporter, Path(file)) if file else reporter


def read(file: Path) -> RunningStep | None:
    """Return the running step; None between two steps."""
    try:
        data = small_file.read_json(file)
        return RunningStep(str(data["step"]), max(0.0, time.time() - float(data["since"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None
