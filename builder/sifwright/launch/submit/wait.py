"""Wait for submitted jobs, and report how they end."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from sifwright.errors import BuildError, MachineError, Problem
from sifwright.launch.submit import job_folder, job_view
from sifwright.launch.submit.job_folder import SubmittedJob
from sifwright.launch.submit.schedulers import CANCELLED, DONE, LOST

# A scheduler that has just taken a job may not show it yet.
_LOOKS = 4
# Looks without an answer, about ten minutes: a controller may be restarted.
_SILENT = 36
_GO_ON = "The jobs go on without this command. Look again: sifwright status"
# Seconds between two questions, which busy schedulers count: soon at first, then rarely.
_SHORTEST, _LONGEST = 1.0, 20.0


def looks(jobs: Path, folders: Collection[str] = ()) -> Iterator[Sequence[SubmittedJob]]:
    """Yield the records of all jobs, or of these folders, until those jobs have ended.

    A lost job counts as ended at the last of several looks. Raises `MachineError` if the scheduler
    has not answered many times.
    """
    pauses, left = _pauses(), _LOOKS
    while True:
        records = _records(jobs, pauses)
        records = [job for job in records if not folders or job.folder in folders]
        yield records
        if not job_folder.unfinished(records):
            left -= 1
            if not left or all(job.state != LOST for job in records):
                return
        next(pauses)


def _records(jobs: Path, pauses: Iterator[None]) -> Sequence[SubmittedJob]:
    """Return the records with their states as they are now, also if some questions fail."""
    for _ in range(_SILENT):
        with suppress(MachineError):
            return job_folder.refresh(jobs)
        next(pauses)
    try:
        return job_folder.refresh(jobs)
    except MachineError as error:
        raise MachineError(*(replace(item, fix=_GO_ON) for item in error.problems)) from error


def _pauses() -> Iterator[None]:
    """Sleep at each step, ever longer."""
    pause = _SHORTEST
    while True:
        time.sleep(pause)
        yield
        pause = min(pause * 1.3, _LONGEST)


def wait(jobs: Path, folders: Collection[str], note: Callable[[str], None]) -> None:
    """Wait until the jobs of these folders have ended; raise `BuildError` if one failed."""
    seen: dict[str, str] = {}
    own: Sequence[SubmittedJob] = ()
    for own in looks(jobs, folders):
        for job in own:
            if seen.get(job.folder) != job.shown_state:
                note(f"job {job.id}: {job.shown_state}: {', '.join(job.steps)}")
            seen[job.folder] = job.shown_state
    if bad := [job for job in own if job.state != DONE]:
        # Jobs behind one that failed are cancelled.
        causes = [job for job in bad if job.state != CANCELLED]
        raise BuildError(*map(_problem, causes or bad))


def _problem(job: SubmittedJob) -> Problem:
    """Return how a job ended, the last line of its log, and where the log is."""
    where = f"job {job.id} ({', '.join(job.images)}: {', '.join(job.steps)})"
    line = job_view.last_line(job)
    state = f"{job.shown_state}: {line}" if line else job.shown_state
    again = " Give the same command again." if job.state == LOST else ""
    return Problem(where=where, what=state, fix=f"Its log: {job.log}.{again}")
