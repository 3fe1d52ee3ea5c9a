"""Submit the jobs of a graph: all of them, or none if the scheduler refuses one."""

import shlex
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sifwright.errors import Problem, SifwrightError, UsageError
from sifwright.launch.submit import job_folder, job_script
from sifwright.launch.submit.graph import BuildJob, Task, build_jobs
from sifwright.launch.submit.job_folder import SubmittedJob
from sifwright.launch.submit.refusals import accepted
from sifwright.launch.submit.schedulers import LOST, ask
from sifwright.launch.submit.submission import Submission


class Missing(NamedTuple):
    """The jobs to submit, those of the queue that do a part already, and lost ones."""

    jobs: Sequence[BuildJob]
    earlier: Sequence[SubmittedJob]
    lost: Sequence[SubmittedJob]


def missing(submission: Submission, chains: Sequence[Sequence[Task]]) -> Missing:
    """Return what is neither done nor queued; to be called with the claim on the jobs.

    Raises `UsageError` if another scheduler has jobs for it.
    """
    wanted = {task.key for chain in chains for task in chain}
    records = job_folder.refresh(submission.home.jobs, is_ours=True)
    own = [job for job in records if wanted & set(job.keys)]
    earlier = job_folder.unfinished(own)
    name = submission.scheduler.name
    if others := [job.id for job in earlier if job.scheduler != name]:
        fix = f"Wait for them, or end them: sifwright cancel {shlex.join(submission.home.words)}"
        message = f"jobs of another scheduler do a part already: {', '.join(others)}"
        raise UsageError.of(message, where=f"--submit {name}", fix=fix)
    queued = {key: job.id for job in earlier for key in job.keys}
    lost = [job for job in own if job.state == LOST]
    return Missing(build_jobs(chains, queued), earlier, lost)


def submit(submission: Submission, planned: Sequence[BuildJob]) -> list[SubmittedJob]:
    """Submit the jobs; remove the folders of jobs that they replace.

    Raises `MachineError` with the scheduler's words if it refuses a job; then those that were
    submitted before it are cancelled.
    """
    jobs: dict[str, SubmittedJob] = {}
    absent = _absent_folders(submission, planned)
    try:
        for job in planned:
            before = jobs[job.after].id if job.after in jobs else job.after
            jobs[job.key] = _submit(submission, job, before)
            job_folder.write(jobs[job.key])
    except BaseException as error:
        left = _take_back(submission, list(jobs.values()))
        for path in absent:
            with suppress(OSError):
                path.rmdir()
        if left and isinstance(error, SifwrightError):
            raise type(error)(*error.problems, left) from error
        raise
    _forget(submission, list(jobs.values()))
    return list(jobs.values())


def _absent_folders(submission: Submission, planned: Sequence[BuildJob]) -> list[Path]:
    """Return the folders of jobs and logs that are not there yet, the innermost first."""
    files = [submission.home.jobs / "job", *map(submission.home.log, planned)]
    folders = {folder for file in files for folder in file.parents if not folder.exists()}
    return sorted(folders, reverse=True)


def _forget(submission: Submission, new: Collection[SubmittedJob]) -> None:
    """Remove the folders of jobs that the new ones replace, or that ended for the same images."""
    images = {image for job in new for image in job.images}
    keys, folders = {job.keys[-1] for job in new}, {job.folder for job in new}
    for job in job_folder.read_all(submission.home.jobs):
        has_ended = not job.is_unfinished and set(job.images) <= images
        if job.folder not in folders and (has_ended or job.keys[-1] in keys):
            job_folder.discard(Path(job.folder))


def _take_back(submission: Submission, jobs: Sequence[SubmittedJob]) -> Problem | None:
    """Cancel jobs, the last one first; return the problem if the scheduler does not."""
    if not jobs:
        return None
    ids = [job.id for job in reversed(jobs)]
    done = ask(submission.scheduler.cancel(ids))
    if done.returncode:
        message = f"still in the queue: {', '.join(ids)}: {done.stderr.strip()}"
        fix = f"End them: sifwright cancel {shlex.join(submission.home.words)}"
        return Problem(what=message, where=submission.scheduler.name, fix=fix)
    for job in jobs:
        job_script.discard(Path(job.folder), Path(job.log))
    return None


def _submit(submission: Submission, job: BuildJob, after: str) -> SubmittedJob:
    """Submit the script of a job, after a record of it without an id."""
    scheduler = submission.scheduler
    record = _write_folder(submission, job, after)
    script = Path(record.folder) / job_folder.SCRIPT
    try:
        output = accepted(scheduler.name, scheduler.submit(str(script), after))
    except Exception:  # after Ctrl-C the scheduler may have the job: the record stays
        job_script.discard(Path(record.folder), Path(record.log))
        raise
    return replace(record, id=scheduler.job_id(output))


def _write_folder(submission: Submission, job: BuildJob, after: str) -> SubmittedJob:
    """Write the folder of a job with its record; nothing of a part stays."""
    written = job_script.write(submission, job)
    record = SubmittedJob(
        id="",
        scheduler=submission.scheduler.name,
        images=job.images,
        steps=tuple(task.name for task in job.tasks),
        keys=tuple(task.key for task in job.tasks),
        log=str(written.log),
        folder=str(written.folder),
        after=after,
    )
    try:
        job_folder.write(record)
    except BaseException:
        job_script.discard(written.folder, written.log)
        raise
    return record
