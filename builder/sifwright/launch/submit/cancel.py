"""Cancel submitted jobs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sifwright.launch.submit import job_claim, job_folder
from sifwright.launch.submit.job_folder import SubmittedJob
from sifwright.launch.submit.schedulers import CANCELLED, LOST, SCHEDULERS, Scheduler, ask, refusal

# Answers of PBS, Flux and Slurm about a job that has ended.
_ENDED = ("Job has finished", "Unknown Job Id", "inactive", "Invalid job id")


def cancel(jobs: Path) -> list[SubmittedJob]:
    """Cancel the jobs that wait or run, and return them; lost ones are written off.

    Raises `MachineError` if the scheduler refuses, or if another command submits jobs.
    """
    if not jobs.exists():
        return []
    with job_claim.alone(jobs):
        return _cancel_all(jobs)


def _cancel_all(jobs: Path) -> list[SubmittedJob]:
    ended = []
    refreshed = job_folder.refresh(jobs, is_ours=True)
    records = job_folder.unfinished(refreshed)
    for name, scheduler in SCHEDULERS.items():
        # The last ones first, so that none starts when the job before it ends.
        if own := [job for job in reversed(records) if job.scheduler == name]:
            _cancel(scheduler, [job.id for job in own])
            ended += [replace(job, state=CANCELLED) for job in own]
    lost = [replace(job, state=CANCELLED) for job in refreshed if job.state == LOST]
    for job in (*ended, *lost):
        job_folder.write(job)
    return ended


def _cancel(scheduler: Scheduler, ids: Sequence[str]) -> None:
    """Cancel jobs; those that have ended meanwhile, as jobs behind a cancelled one do, are fine."""
    done = ask(scheduler.cancel(ids))
    lines = [line for line in done.stderr.splitlines() if not any(word in line for word in _ENDED)]
    if done.returncode and lines:
        raise refusal(done)
