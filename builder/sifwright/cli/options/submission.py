"""Submission of builds and installations to the scheduler, as commands report it."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from sifwright.catalog.model import Site
from sifwright.catalog.project_folder import project_folder
from sifwright.launch.submit.graph import Task
from sifwright.launch.submit.schedulers import SCHEDULERS
from sifwright.launch.submit.submit import prepare, submit
from sifwright.launch.submit.wait import wait


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    text = "let jobs do it: slurm, pbs or flux; default: the site's"
    add("--submit", nargs="?", const="", choices=("", *SCHEDULERS), metavar="SCHEDULER", help=text)
    add("--wait", action="store_true", help="with --submit: wait for the jobs to end")
    add(
        "--directive",
        dest="directives",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="with --submit: an option of the scheduler, as in partition=cpu; may be repeated",
    )


def command_words(arguments: Namespace, *words: str) -> list[str]:
    """Return a command of a job, with this project, as sifwright's own words."""
    settings = (f"--set={text}" for text in arguments.settings)
    return ["--project", str(project_folder(arguments.project)), *words, *settings]


def submit_tasks(
    arguments: Namespace,
    site: Site,
    chains: Sequence[Sequence[Task]],
    output: Path,
    note: Callable[[str], None],
) -> None:
    """Submit what is missing, report it, and wait for it if that is asked."""
    submission = prepare(site, arguments.submit, arguments.directives, output)
    new, earlier = submit(submission, [chain for chain in chains if chain])
    for state, jobs in (("submitted", new), ("queued already", earlier)):
        for job in jobs:
            note(f"{state}: job {job.id}: {', '.join(job.steps)} ({', '.join(job.images)})")
    if not (new or earlier):
        note("up to date: no job is needed")
        return
    if arguments.wait:
        wait(submission.jobs, {job.folder for job in (*new, *earlier)}, note)
    else:
        note(f"look at them: sifwright status --output {output}")
