"""Submit the jobs of a graph: all of them, or none if the scheduler refuses one."""

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sifwright.catalog.model import Site
from sifwright.errors import UsageError
from sifwright.launch import directive_rules, directives
from sifwright.launch.directives import MARKS, Directive, further
from sifwright.launch.job_rules import ACCOUNTS
from sifwright.launch.jobscript import word, words
from sifwright.launch.model import JobRequest
from sifwright.launch.submit import job_folder, job_settings
from sifwright.launch.submit.graph import BuildJob, Task, build_jobs
from sifwright.launch.submit.job_folder import SubmittedJob
from sifwright.launch.submit.schedulers import SCHEDULERS, Scheduler, answer
from sifwright.render.templating import template
from sifwright.system import processes

_ACCOUNT = {"slurm": "account", "pbs": "A", "flux": "bank"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """The scheduler and the facts of its site, further directives, and the folder of images."""

    scheduler: Scheduler
    site: Site
    directives: tuple[str, ...]
    output: Path

    @property
    def jobs(self) -> Path:
        return self.output / "jobs"


def prepare(site: Site, scheduler: str, given: Sequence[str], output: Path) -> Submission:
    """Return how to submit; raises `UsageError` for what the scheduler would refuse.

    Directives of the site are for its own scheduler only.
    """
    name = scheduler or site.scheduler
    if name not in SCHEDULERS:
        message = f"site '{site.name}' has no scheduler"
        fix = f"Name this machine's: --submit {'|'.join(SCHEDULERS)}."
        raise UsageError.of(message, where="--submit", fix=fix)
    if name != site.scheduler:
        job = replace(site.job, directives={}, needs_account=False)
        site = replace(site, scheduler=name, job=job, partitions={}, qos={})
    request = _request(given)
    if problems := list(directive_rules.directive_problems(site, request)):
        raise UsageError(*problems)
    submission = Submission(
        scheduler=SCHEDULERS[name],
        site=site,
        directives=tuple(given),
        output=output.absolute(),
    )
    _require_account(submission)
    return submission


def submit(
    submission: Submission, chains: Sequence[Sequence[Task]]
) -> tuple[list[SubmittedJob], list[SubmittedJob]]:
    """Submit what is missing and not queued yet; return the new jobs, and those that were there.

    Raises `MachineError` with the scheduler's words if it refuses a job; then those that were
    submitted before it are cancelled.
    """
    wanted = {task.key for chain in chains for task in chain}
    records = job_folder.unfinished(job_folder.refresh(submission.jobs))
    earlier = [job for job in records if wanted & set(job.keys)]
    queued = {key: job.id for job in earlier for key in job.keys}
    jobs: dict[str, SubmittedJob] = {}
    try:
        for job in build_jobs(chains, queued):
            before = jobs[job.after].id if job.after in jobs else job.after
            jobs[job.key] = _submit(submission, job, before)
    except BaseException:
        _take_back(submission, list(jobs.values()))
        raise
    _forget(submission, {image for job in jobs.values() for image in job.images}, jobs)
    return list(jobs.values()), earlier


def _forget(
    submission: Submission, images: Collection[str], jobs: Mapping[str, SubmittedJob]
) -> None:
    """Remove the folders of jobs that ended and were for these images only."""
    for job in job_folder.read_all(submission.jobs):
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
    folder = job_folder.folder_of(submission.jobs, job.name, job.key)
    log = submission.output / job.images[0] / f"{job.tasks[-1].name}.job.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    job_folder.make(folder)
    try:
        job_settings.write(folder / job_folder.SETTINGS)
        script = folder / job_folder.SCRIPT
        script.write_text(render_script(submission, job, folder, log), encoding="utf-8")
        submitted = SubmittedJob(
            id=scheduler.job_id(answer(scheduler.submit(str(script), after))),
            scheduler=scheduler.name,
            images=job.images,
            steps=tuple(task.name for task in job.tasks),
            keys=tuple(task.key for task in job.tasks),
            log=str(log),
            folder=str(folder),
        )
        job_folder.write(submitted)
    except BaseException:
        job_folder.discard(folder)
        raise
    return submitted


def render_script(submission: Submission, job: BuildJob, folder: Path, log: Path) -> str:
    """Return the text of the job script, which holds no setting of this machine."""
    filters = (("word", word), ("words", words))
    program = [sys.executable, "-P", "-m", "sifwright", *job.tasks[-1].words]
    return template("launch/templates/build.sh.j2", *filters).render(
        mark=MARKS[submission.scheduler.name],
        directives=[str(directive) for directive in _directives(submission, job, log)],
        images=" ".join(job.images),
        folder=str(folder),
        start=str(Path.cwd()),
        command=program,
    )


def _directives(submission: Submission, job: BuildJob, log: Path) -> list[Directive]:
    """Return the directives of a job; those of the user replace all others."""
    scheduler, account = submission.scheduler, _account(submission, os.environ)
    title = "N" if scheduler.name == "pbs" else "job-name"
    pairs = [(title, job.name), *scheduler.resources(job.resources), *scheduler.output(str(log))]
    if account:
        pairs.append((_ACCOUNT[scheduler.name], account))
    own = [Directive(*pair) for pair in pairs]
    of_site = further(submission.site, _request(()))
    given = [directives.given(submission.site, text) for text in submission.directives]
    by_key = {directive.key: directive for directive in (*of_site, *own, *given)}
    return list(by_key.values())


def _request(given: Sequence[str]) -> JobRequest:
    return JobRequest(nodes=1, arguments=(), directives=tuple(given))


def _account(submission: Submission, environ: Mapping[str, str]) -> str:
    return environ.get(ACCOUNTS.get(submission.scheduler.name, ""), "")


def _require_account(submission: Submission) -> None:
    """Raise `UsageError` if the site refuses jobs without an account and none is named."""
    name = submission.scheduler.name
    named = {directives.given(submission.site, text).name for text in submission.directives}
    if not submission.site.job.needs_account or _account(submission, os.environ):
        return
    if _ACCOUNT[name] not in named:
        message = f"the scheduler of site '{submission.site.name}' refuses jobs without an account"
        fix = f"Set {ACCOUNTS.get(name, 'it')}, or give --directive {_ACCOUNT[name]}=PROJECT."
        raise UsageError.of(message, where="--submit", fix=fix)
