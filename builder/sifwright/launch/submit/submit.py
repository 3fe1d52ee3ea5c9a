"""Submit the jobs of a graph: all of them, or none if the scheduler refuses one."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sifwright.errors import MachineError
from sifwright.launch.submit import job_folder, job_script
from sifwright.launch.submit.graph import BuildJob, Task, build_jobs
from sifwright.launch.submit.job_folder import SubmittedJob
from sifwright.launch.submit.refusals import accepted
from sifwright.launch.submit.schedulers import LOST, ask
from sifwright.launch.submit.submission import Submission
from sifwright.make_image.cache import claims
from sifwright.system import cache_folder


class Missing(NamedTuple):
    """The jobs to submit, those of the queue that do a part already, and lost ones."""

    jobs: Sequence[BuildJob]
    earlier: Sequence[SubmittedJob]
    lost: Sequence[SubmittedJob]


@contextmanager
def alone(jobs: Path) -> Iterator[None]:
    """Keep other commands from submitting jobs of this folder.

    Raises `MachineError` if another command does so now, on any machine with this step cache.
    """
    root = cache_folder.root()
    cache_folder.make(root)
    key = hashlib.sha256(str(jobs.resolve()).encode()).hexdigest()
    with claims.try_claim(root, key) as is_ours:
        if not is_ours:
            fix = "Give this command again when that one has ended."
            raise MachineError.of("another command submits jobs now", where=str(jobs), fix=fix)
        yield


def missing(submission: Submission, chains: Sequence[Sequence[Task]]) -> Missing:
    """Return what is neither done nor queued."""
    wanted = {task.key for chain in chains for task in chain}
    records = job_folder.refresh(submission.home.jobs)
    own = [job for job in records if wanted & set(job.keys)]
    earlier = job_folder.unfinished(own)
    queued = {key: job.id for job in earlier for key in job.keys}
    lost = [job for job in own if job.state == LOST]
    return Missing(build_jobs(chains, queued), earlier, lost)


def submit(submission: Submission, planned: Sequence[BuildJob]) -> list[SubmittedJob]:
    """Submit the jobs.

    Raises `MachineError` with the scheduler's words if it refuses a job; then those that were
    submitted before it are cancelled.
    """
    jobs: dict[str, SubmittedJob] = {}
    absent = _absent_folders(submission, planned)
    try:
        for job in planned:
            before = jobs[job.after].id if job.after in jobs else job.after
            jobs[job.key] = _submit(submission, job, before)
    except BaseException:
        _take_back(submission, list(jobs.values()))
        for path in absent:
            with suppress(OSError):
                path.rmdir()
        raise
    _forget(submission, {image for job in jobs.values() for image in job.images}, jobs)
    return list(jobs.values())


def _absent_folders(submission: Submission, planned: Sequence[BuildJob]) -> list[Path]:
    """Return the folders of jobs and logs that are not there yet, the innermost first."""
    files = [submission.home.jobs / "job", *map(submission.home.log, planned)]
    folders = {folder for file in files for folder in file.parents if not folder.exists()}
    return sorted(folders, reverse=True)


def _forget(
    submission: Submission, images: Collection[str], jobs: Mapping[str, SubmittedJob]
) -> None:
    """Remove the folders of jobs that ended and were for these images only."""
    for job in job_folder.read_all(submission.home.jobs):
        if not job.is_unfinished and set(job.images) <= set(images) and job.keys[-1] not in jobs:
            job_folder.discard(Path(job.folder))


def _take_back(submission: Submission, jobs: Sequence[SubmittedJob]) -> None:
    if jobs:
        ask(submission.scheduler.cancel([job.id for job in reversed(jobs)]))
    for job in jobs:
        job_folder.discard(Path(job.folder))


def _submit(submission: Submission, job: BuildJob, after: str) -> SubmittedJob:
    """Write the folder of a job and submit its script; a record without an id comes first."""
    scheduler = submission.scheduler
    written = job_script.write(submission, job)
    record = SubmittedJob(
        id="",
        scheduler=scheduler.name,
        images=job.images,
        steps=tuple(task.name for task in job.tasks),
        keys=tuple(task.key for task in job.tasks),
        log=str(written.log),
        folder=str(written.folder),
        after=after,
    )
    command = scheduler.submit(str(written.script), after)
    try:
        job_folder.write(record)
        submitted = replace(record, id=scheduler.job_id(accepted(scheduler.name, command)))
        job_folder.write(submitted)
    except BaseException:
        job_folder.discard(written.folder)
        raise
    return submitted
