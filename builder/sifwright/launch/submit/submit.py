"""Submit the jobs of a graph: all of them, or none if the scheduler refuses one."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sifwright.launch.submit import job_folder, job_script
from sifwright.launch.submit.graph import BuildJob, Task, build_jobs
from sifwright.launch.submit.job_folder import SubmittedJob
from sifwright.launch.submit.refusals import accepted
from sifwright.launch.submit.submission import Submission
from sifwright.system import processes


class Missing(NamedTuple):
    """The jobs to submit, and those of the queue that do a part already."""

    jobs: Sequence[BuildJob]
    earlier: Sequence[SubmittedJob]


def missing(submission: Submission, chains: Sequence[Sequence[Task]]) -> Missing:
    """Return what is neither done nor queued."""
    wanted = {task.key for chain in chains for task in chain}
    records = job_folder.unfinished(job_folder.refresh(submission.home.jobs))
    earlier = [job for job in records if wanted & set(job.keys)]
    queued = {key: job.id for job in earlier for key in job.keys}
    return Missing(build_jobs(chains, queued), earlier)


def submit(submission: Submission, planned: Sequence[BuildJob]) -> list[SubmittedJob]:
    """Submit the jobs.

    Raises `MachineError` with the scheduler's words if it refuses a job; then those that were
    submitted before it are cancelled.
    """
    jobs: dict[str, SubmittedJob] = {}
    try:
        for job in planned:
            before = jobs[job.after].id if job.after in jobs else job.after
            jobs[job.key] = _submit(submission, job, before)
    except BaseException:
        _take_back(submission, list(jobs.values()))
        raise
    _forget(submission, {image for job in jobs.values() for image in job.images}, jobs)
    return list(jobs.values())


def _forget(
    submission: Submission, images: Collection[str], jobs: Mapping[str, SubmittedJob]
) -> None:
    """Remove the folders of jobs that ended and were for these images only."""
    for job in job_folder.read_all(submission.home.jobs):
        if not job.is_unfinished and set(job.images) <= set(images) and job.keys[-1] not in jobs:
            job_folder.discard(Path(job.folder))


def _take_back(submission: Submission, jobs: Sequence[SubmittedJob]) -> None:
    if jobs:
        processes.capture(submission.scheduler.cancel([job.id for job in jobs]))
    for job in jobs:
        job_folder.discard(Path(job.folder))


def _submit(submission: Submission, job: BuildJob, after: str) -> SubmittedJob:
    """Write the folder of a job and submit its script."""
    scheduler = submission.scheduler
    written = job_script.write(submission, job)
    command = scheduler.submit(str(written.script), after)
    try:
        submitted = SubmittedJob(
            id=scheduler.job_id(accepted(scheduler.name, command)),
            scheduler=scheduler.name,
            images=job.images,
            steps=tuple(task.name for task in job.tasks),
            keys=tuple(task.key for task in job.tasks),
            log=str(written.log),
            folder=str(written.folder),
            after=after,
        )
        job_folder.write(submitted)
    except BaseException:
        job_folder.discard(written.folder)
        raise
    return submitted
