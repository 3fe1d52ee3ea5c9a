"""Submit what is missing to the scheduler, and report it as commands do."""

import shlex
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sifwright.catalog.model import Site
from sifwright.catalog.project_folder import project_folder
from sifwright.cli.options.output import print_lines
from sifwright.cli.options.submission import PRINT, printed, scheduler_of
from sifwright.errors import UsageError
from sifwright.launch.submit import by_hand, job_script, shared_folders
from sifwright.launch.submit.graph import BuildJob, Task
from sifwright.launch.submit.job_claim import alone
from sifwright.launch.submit.jobs_place import JobsPlace
from sifwright.launch.submit.shared_folders import SharedFolder
from sifwright.launch.submit.submission import Submission, prepare
from sifwright.launch.submit.submit import Missing, missing, submit
from sifwright.launch.submit.wait import wait
from sifwright.make_image.resolve_request.secrets import read_secrets


def submit_tasks(
    arguments: Namespace,
    sites: Sequence[Site],
    chains: Sequence[Sequence[Task]],
    home: JobsPlace,
    note: Callable[[str], None],
) -> None:
    """Submit what is missing, report it, and wait for it if that is asked."""
    if arguments.wait and printed(arguments):
        fix = f"Leave out --wait or {PRINT}."
        raise UsageError.of("nothing is submitted", where="--wait", fix=fix)
    submission = replace(
        prepare(sites, scheduler_of(arguments), arguments.directives, home),
        secrets=read_secrets(getattr(arguments, "secret", ())),
    )
    with alone(home.jobs):
        lacking = missing(submission, [chain for chain in chains if chain])
        if not lacking.jobs and not lacking.earlier:
            note("up to date: no job is needed")
            return
        submission = replace(submission, folders=_folders(arguments, sites[0], home))
        print_lines(_remarks(submission, lacking), note)
        if printed(arguments):
            _print(submission, lacking.jobs, note)
            return
        new = submit(submission, lacking.jobs)
    for job in new:
        note(f"submitted: job {job.id}: {', '.join(job.steps)} ({', '.join(job.images)})")
    if arguments.wait:
        wait(home.jobs, {job.folder for job in (*new, *lacking.earlier)}, note)
    else:
        note(f"look at them: sifwright status {shlex.join(home.words)}")


def _remarks(submission: Submission, lacking: Missing) -> Iterator[str]:
    """Yield a line for each earlier job, and for new ones with more hours than a queue gives."""
    for old in lacking.earlier:
        yield f"queued already: job {old.id}: {', '.join(old.steps)} ({', '.join(old.images)})"
    for old in lacking.lost:
        yield f"{old.shown_state}: {', '.join(old.steps)}: {old.folder}"
    limit = job_script.longest(submission)
    for job in lacking.jobs:
        if (hours := job.resources.hours) > limit:
            yield (
                f"{job.name} asks for {limit:g} of {hours:g} hours, the queue's most;"
                " if it ends early, submit again"
            )


def _folders(arguments: Namespace, site: Site, home: JobsPlace) -> tuple[SharedFolder, ...]:
    return (
        shared_folders.program(),
        shared_folders.project(project_folder(arguments.project), site.name),
        *([shared_folders.step_cache()] if home.images else []),
    )


def _print(
    submission: Submission, planned: Sequence[BuildJob], note: Callable[[str], None]
) -> None:
    """Write the scripts; print where they are, and the commands that submit them."""
    written = by_hand.write(submission, planned)
    for job, script in written:
        steps = ", ".join(task.name for task in job.tasks)
        note(f"written: {script}: {steps} ({', '.join(job.images)})")
    note("nothing is submitted; by hand:" if written else "nothing is left to submit")
    print_lines(by_hand.commands(submission, written), note)
