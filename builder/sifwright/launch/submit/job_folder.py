"""The folder of a submitted job, `jobs/NAME-KEY/`: script, settings, record and exit status.

A job that is submitted again has another folder, `jobs/NAME-KEY-2/`.

Nobody else can read it: the settings may hold passwords. The job removes them when it ends.
"""

import json
import re
import shutil
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sifwright.launch.submit import job_claim
from sifwright.launch.submit.schedulers import (
    CANCELLED,
    DONE,
    FAILED,
    LOST,
    QUEUED,
    SCHEDULERS,
    UNFINISHED,
    JobState,
)
from sifwright.system import files, small_file

SCRIPT, SETTINGS, STATUS = "job.sh", "settings", "status"
_RECORD = "job.json"
# Beside the folders of the jobs of an installation.
_NOTE = "new-folders.json"
# The folders and the log of jobs that install; the end is the first digits of a task's key.
_INSTALL, _LOG = re.compile(r"install-[0-9a-f]{8}(-[0-9]+)?"), "install.job.log"
_SHOWN, _MOST = 8, 1000
# States of a record without an id.
_CUT_OFF, _SUBMITTING = "a command ended while it submitted it", "being submitted"


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmittedJob:
    """The record of a job; `keys` are those of its tasks, `state` is that of the last look.

    `id` is empty until the scheduler has answered. `after` is the id of the job before. `reason` is
    the scheduler's word on a job that waits in vain, or that it ended.
    """

    id: str
    scheduler: str
    images: tuple[str, ...]
    steps: tuple[str, ...]
    keys: tuple[str, ...]
    log: str
    folder: str
    after: str = ""
    state: str = QUEUED
    reason: str = ""

    @property
    def shown_state(self) -> str:
        """Return the state as people read it."""
        return f"{self.state}, {self.reason}" if self.reason else self.state

    @property
    def is_unfinished(self) -> bool:
        return self.state in UNFINISHED


def free_folder(jobs: Path, name: str, key: str) -> Path:
    """Return a folder of a job below that of all jobs: a new one, or one without a record."""
    first = f"{name}-{key[:_SHOWN]}"
    names = (first, *(f"{first}-{number}" for number in range(2, _MOST)))
    return next(jobs / name for name in names if not (jobs / name / _RECORD).exists())


def make(folder: Path) -> None:
    """Make the folder, for us alone; what an earlier job left there goes."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    discard(folder)
    folder.mkdir(mode=0o700)


def discard(folder: Path) -> None:
    """Remove the folder of a job, if it is there."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


@contextmanager
def noted(jobs: Path) -> Iterator[None]:
    """Note what is there before an installation's first job, for `discard_all`.

    The note comes before the job: a kill leaves it. If no job is made inside, it goes.
    """
    if is_noted(jobs):
        yield
        return
    others = [path.name for path in jobs.iterdir()] if jobs.is_dir() else []
    new = [str(folder) for folder in (jobs, *jobs.parents) if not folder.exists()]
    jobs.mkdir(parents=True, exist_ok=True)
    try:
        files.write(jobs / _NOTE, json.dumps({"new": new, "others": others}).encode(), mode=0o600)
        yield
    finally:
        if not _own(jobs, others):
            _remove_empty(jobs, new)


def is_noted(jobs: Path) -> bool:
    """Return whether jobs of an installation were made there."""
    return (jobs / _NOTE).exists()


def discard_all(jobs: Path) -> None:
    """Remove the folders and the log of the jobs of an installation; other files stay.

    Without a note that can be read, nothing is removed: all of it may be another user's.
    """
    try:
        note = small_file.read_json(jobs / _NOTE)
        if isinstance(note, list):  # of earlier versions: the folders above
            note = {"new": [str(jobs), *note], "others": []}
        new, others = set(note["new"]), set(note["others"])
    except (OSError, ValueError, TypeError, LookupError):
        return
    for folder in _own(jobs, others):
        discard(folder)
    if _LOG not in others:
        (jobs / _LOG).unlink(missing_ok=True)
    _remove_empty(jobs, new)


def _own(jobs: Path, others: Container[str]) -> list[Path]:
    """Return the folders of jobs that are not in `others`, the names that were there before."""
    folders = (script.parent for script in jobs.glob(f"*/{SCRIPT}"))
    return [x for x in folders if _INSTALL.fullmatch(x.name) and x.name not in others]


def _remove_empty(jobs: Path, new: Container[str]) -> None:
    """Remove the note, and the new folders from the innermost on, until one has files."""
    (jobs / _NOTE).unlink(missing_ok=True)
    with suppress(OSError):
        for folder in (jobs, *jobs.parents):
            if str(folder) in new:
                folder.rmdir()


def write(job: SubmittedJob) -> None:
    """Write the record; without settings, once the job has ended."""
    folder = Path(job.folder)
    files.write(folder / _RECORD, json.dumps(asdict(job), indent=1).encode(), mode=0o600)
    if not job.is_unfinished:
        shutil.rmtree(folder / SETTINGS, ignore_errors=True)


def read_all(jobs: Path) -> list[SubmittedJob]:
    """Return the records of all jobs, the oldest first; broken ones are left out."""
    return sorted(_read(jobs), key=lambda job: (len(job.id), job.id))


def _read(jobs: Path) -> Iterator[SubmittedJob]:
    for path in jobs.glob(f"*/{_RECORD}"):
        with suppress(OSError, ValueError, TypeError, LookupError):
            data = small_file.read_json(path)
            lists = {name: tuple(data[name]) for name in ("images", "steps", "keys")}
            job = SubmittedJob(**{**data, **lists, "folder": str(path.parent)})
            if _is_right(job):
                yield job


def _is_right(job: SubmittedJob) -> bool:
    """Return whether a record names images and keys, and has texts only."""
    texts = (job.id, job.scheduler, job.log, job.after, job.state, job.reason)
    values = (*texts, *job.images, *job.steps, *job.keys)
    has_names = bool(job.images and job.keys) and job.scheduler in SCHEDULERS
    has_texts = all(isinstance(value, str) for value in values)
    return has_names and has_texts and "\0" not in "".join(values)


def refresh(jobs: Path, *, is_ours: bool = False) -> list[SubmittedJob]:
    """Return the records of all jobs with their states as they are now; keep those that ended.

    `is_ours` says that the caller has the claim on the jobs. Raises `MachineError` if the scheduler
    does not answer.
    """
    records = read_all(jobs)
    seen_states = {job.id: job.state for job in records}
    for name, scheduler in SCHEDULERS.items():
        asked = [job for job in records if job.scheduler == name and job.is_unfinished]
        ids = [job.id for job in asked if job.id]
        states = scheduler.states(ids) if ids else {}
        for job in asked:
            seen = states.get(job.id, JobState(""))
            state = _state(job, seen.state, seen_states.get(job.after, ""))
            fresh = replace(job, state=state, reason=seen.reason)
            if state == LOST and not job.id:
                fresh = _without_id(job, is_cut_off=is_ours or not job_claim.is_held(jobs))
            # A scheduler that has just started may still find a job that it seems to have lost.
            if fresh != job and fresh.state != LOST:
                write(fresh)
            records[records.index(job)] = fresh
            seen_states[job.id] = state
    return records


def _without_id(job: SubmittedJob, *, is_cut_off: bool) -> SubmittedJob:
    """Return a job for which the scheduler has not answered."""
    if is_cut_off:
        return replace(job, state=LOST, reason=_CUT_OFF)
    return replace(job, state=QUEUED, reason=_SUBMITTING)


def _state(job: SubmittedJob, known: str, before: str) -> str:
    """Return the state by the job's exit status, by the scheduler and by the job before.

    A restarted scheduler may not know yet that a job has ended. A job without an exit status is
    lost if the scheduler does not know it. If the job before did not succeed, it is cancelled. The
    scheduler will remove it, and PBS without job history has done so.
    """
    status = ""
    with suppress(OSError):
        status = small_file.read_text(Path(job.folder) / STATUS).strip()
    if status == "0":
        return DONE
    if known in {"", QUEUED} and not status and before in {FAILED, CANCELLED}:
        return CANCELLED
    return known or (FAILED if status else LOST)


def unfinished(records: Sequence[SubmittedJob]) -> list[SubmittedJob]:
    """Return the jobs that wait or run."""
    return [job for job in records if job.is_unfinished]
