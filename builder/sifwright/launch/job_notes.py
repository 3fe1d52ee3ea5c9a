"""Notes for a user about a job that nothing refuses."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain

from sifwright.errors import quoted
from sifwright.launch import job_mpi
from sifwright.launch.directives import OPTIONS, directives
from sifwright.launch.job_rules import TORCHRUN
from sifwright.launch.model import Job

_VARIABLE = re.compile(r"\$(\{[A-Za-z_]\w*\}|[A-Za-z_]\w*)")


def notes_about_job(job: Job, environ: Mapping[str, str]) -> Iterator[str]:
    """Return the notes about a job that is submitted from a shell with this environment."""
    return chain(
        _launcher(job),
        _account(job),
        _arguments(job),
        job_mpi.mpi_notes(job),
        _loaded_image(job, environ),
        _unchecked_image(job),
        _submission(job, environ),
    )


def _launcher(job: Job) -> Iterator[str]:
    """Yield the advice of the site's own documentation against a launcher."""
    name = TORCHRUN if job.torchrun else job.launcher
    options = job.site.launch.get(name)
    if options and options.avoid:
        source = f" ({options.source})" if options.source else ""
        yield f"{name} at site '{job.site.name}': {options.avoid}{source}"


def _account(job: Job) -> Iterator[str]:
    request = job.request
    if request.account_variable:
        yield f"account {quoted(request.account)} is that of {request.account_variable}"


def _arguments(job: Job) -> Iterator[str]:
    for value in job.request.arguments:
        if (match := _VARIABLE.search(value)) and not job.request.expand_variables:
            yield (
                f"{quoted(value)} is passed as it is:"
                f" {match[0]} is replaced by its value with --expand-variables only"
            )


def _loaded_image(job: Job, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a note if the job takes an image of this shell, which was not inspected."""
    request, sif = job.request, environ.get("SIF", "")
    named = request.sif or request.modules or job.run_in != "container"
    if sif and not named and sif != request.built_sif:
        text = f"the job takes SIF={quoted(sif)} of this shell if it is submitted here"
        yield f"{text}, and its MPI was not looked at: name it with --sif"


def _unchecked_image(job: Job) -> Iterator[str]:
    """Yield a note if the script cannot say which bytes the image has."""
    request = job.request
    if request.check_program and not (request.image_digests or request.modules):
        text = f"no image is at {quoted(request.sif or request.built_sif, 200)}: the job compares"
        yield f"{text} its image with a record.json beside it only; write the script after a build"


def _submission(job: Job, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield variables that sbatch prefers to the directives of a script (sbatch(1))."""
    if job.site.scheduler != "slurm":
        return
    written = {directive.name: directive.value for directive in directives(job)}
    names = {"account", "time", *OPTIONS["slurm"].values()} - {"output"}
    for name in sorted(names & written.keys()):
        variable = "SBATCH_TIMELIMIT" if name == "time" else f"SBATCH_{name.upper()}"
        value = environ.get(variable)
        if value and value != written[name]:
            yield (
                f"sbatch takes {variable}={quoted(value)} of this shell"
                f" over --{name}={written[name]} of the script: unset {variable}"
            )
