"""Arguments of submission to the scheduler, and the site that they mean."""

import os
import shlex
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace

from sifwright.catalog.model import Site
from sifwright.catalog.project_folder import project_folder
from sifwright.cli.options import arguments as shared
from sifwright.cli.options import matrix
from sifwright.errors import UsageError
from sifwright.launch.submit import jobs_place
from sifwright.launch.submit.jobs_place import JobsPlace
from sifwright.launch.submit.schedulers import SCHEDULERS

PRINT = "print"
# Each scheduler sets its own in a job; Flux the last one in those of 'flux batch'.
_IN_JOB = ("SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID", "FLUX_ENCLOSING_ID")
_SUBMIT = ("", *SCHEDULERS, PRINT, *(f"{PRINT}:{name}" for name in SCHEDULERS))
ARGUMENTS = (
    shared.argument(
        "--submit",
        nargs="?",
        const="",
        choices=_SUBMIT,
        metavar="SCHEDULER",
        help="run it by jobs of slurm, pbs or flux; default: the site's; print, print:slurm:"
        " submit nothing",
    ),
    shared.switch("--wait", "with --submit: wait for the jobs to end"),
    shared.directive("with --submit: an option of the scheduler, as in partition=cpu"),
)
# The options that say whose jobs are meant.
PLACE = (
    shared.OUTPUT_FOLDER,
    shared.text(
        "--prefix", "DIR", "the jobs of the installation in this folder, in place of --output"
    ),
)


def require_submit(arguments: Namespace) -> None:
    """Raise `UsageError` for options of jobs without --submit."""
    given = {"--wait": arguments.wait, "--directive": arguments.directives}
    if arguments.submit is None and (names := [name for name, value in given.items() if value]):
        raise UsageError.of("is for jobs", where=names[0], fix="Give --submit as well.")


def printed(arguments: Namespace) -> bool:
    """Return whether the jobs are only written."""
    return str(arguments.submit).startswith(PRINT)


def scheduler_of(arguments: Namespace) -> str:
    """Return the scheduler that is named; empty for the site's."""
    return str(arguments.submit).removeprefix(PRINT).removeprefix(":")


def place_of(arguments: Namespace) -> JobsPlace:
    """Return the place that these options name."""
    if arguments.prefix:
        return jobs_place.of_installation(arguments.prefix)
    return jobs_place.of_images(arguments.output)


def command_words(arguments: Namespace, *words: str) -> list[str]:
    """Return a command of a job, with this project, as sifwright's own words.

    With --verbose, the log of the job has the output of the steps.
    """
    settings = matrix.words(arguments) + (["--verbose"] if arguments.verbose else [])
    return ["--project", str(project_folder(arguments.project)), *words, *settings]


def way_out(arguments: Namespace, site: Site) -> Iterator[str]:
    """Yield the command that builds or installs in a job, if the site wants it and this is none."""
    submitting = getattr(arguments, "submit", None) is not None
    if submitting or any(os.environ.get(name) for name in _IN_JOB):
        return
    if site.builds and site.builds.where == "batch" and site.delivery == "sif":
        yield f"in a job: {_command(arguments, site)}"


def _command(arguments: Namespace, site: Site) -> str:
    """Return the line for a shell that submits the work, with an account if one is needed."""
    from sifwright.launch.job_rules import ACCOUNTS  # noqa: PLC0415  # only outside of jobs

    prefix, output = getattr(arguments, "prefix", ""), getattr(arguments, "output", "build")
    words = [
        *("sifwright", "install" if prefix else "build", site.name),
        *filter(None, [arguments.image]),
        *matrix.words(arguments),
        *([f"--prefix={prefix}"] if prefix else []),
        *([] if output == "build" else [f"--output={output}"]),
    ]
    variable = ACCOUNTS.get(site.scheduler, "") if site.job.needs_account else ""
    before = f"{variable}=PROJECT " if variable and not os.environ.get(variable) else ""
    return f"{before}{shlex.join(words)} --submit"


def site_of_jobs(site: Site, scheduler: str) -> Site:
    """Return the site with the facts of a build's jobs.

    Where users build no SIFs, jobs of a build run on another machine. Raises `UsageError` unless
    its scheduler is named.
    """
    if not site.builds or (site.builds.where != "elsewhere" and site.delivery == "sif"):
        return site
    if not scheduler:
        message = f"users build no SIFs at site '{site.name}': {site.builds.why}"
        raise UsageError.of(
            message,
            where="--submit",
            fix="Build on another machine, copy, install: docs/how-to/build-elsewhere.md."
            f" By jobs of that machine: --submit {'|'.join(SCHEDULERS)}.",
        )
    return replace(site, scheduler="local")
