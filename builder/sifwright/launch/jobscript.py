"""Render a job as a batch script: one template for each scheduler, all on one base."""

import re
from collections.abc import Iterable
from dataclasses import replace

from sifwright.catalog import site_environment
from sifwright.errors import PlanError, quoted
from sifwright.launch import directives, job_mpi, launch_command, staging
from sifwright.launch.model import Job
from sifwright.render import shell
from sifwright.render.templating import template

# Text that every scheduler takes from a directive unchanged.
_WORD = re.compile(r"[A-Za-z0-9_.,:=+@%/&|*!()\[\]{} -]+")

# Folder at sites that name no disk of their nodes.
_TEMPORARY = "/tmp"  # noqa: S108


def render_jobscript(job: Job) -> str:
    """Return the text of the batch script, ready to be submitted."""
    filters = (("word", word), ("words", words))
    return template(f"launch/templates/{job.site.scheduler}.sh.j2", *filters).render(
        job=job,
        shape=_shape(job),
        mark=directives.MARKS.get(job.site.scheduler, ""),
        directives=[str(directive) for directive in directives.directives(job)],
        of_other_jobs=directives.variables_of_other_jobs(job),
        loaded=_loaded(job),
        families=[name.rpartition("/")[0] or name for name in reversed(job.request.modules)],
        variables=_variables(job),
        launch=launch_command.command(job),
        exports_by_name=job_mpi.exports_by_name(job),
        environment_mpi=job_mpi.environment_mpi(job),
        stage_path=job.site.local_disk.path if job.site.local_disk else _TEMPORARY,
        per_node=_per_node(job),
        names=staging.NAMES,
    )


def _per_node(job: Job) -> list[str]:
    """Return the launcher of a task on each node; srun waits for the step before, quietly."""
    words = launch_command.words(replace(job, tasks=1))
    return [*words, "--quiet"] if words[:1] == ["srun"] else words


def word(value: str) -> str:
    """Return a value for a directive; schemas and rules refuse other values before."""
    if _WORD.fullmatch(value):
        return value
    fix = "Use letters, digits and plain punctuation."
    raise PlanError.of(f"{quoted(value)} cannot stand in a directive", where="job script", fix=fix)


def words(values: Iterable[str]) -> str:
    return " ".join(map(shell.quote, values))


def _shape(job: Job) -> str:
    nodes = f"{job.request.nodes} node{'s' if job.request.nodes > 1 else ''}"
    ranks = f"{job.ranks} rank{'s' if job.ranks > 1 else ''}"
    return f"{nodes}, {ranks} on each{', started by torchrun' if job.torchrun else ''}"


def _variables(job: Job) -> dict[str, str]:
    """Return the variables that the script exports; a container has the site's in its image."""
    site = job.site
    if job.run_in == "host":
        return site_environment.variables(site, job.request.nodes) | dict(site.mpi_environment)
    if job.request.host_mpi and site.host_mpi:
        return {**site.mpi_environment, **site.host_mpi.environment}
    return {}


def _loaded(job: Job) -> tuple[str, ...]:
    """Return the modules that the site has for such a job."""
    names = job.site.modules.host if job.run_in == "host" else job.site.modules.container
    host_mpi = job.site.host_mpi if job.request.host_mpi else None
    return names + host_mpi.modules if host_mpi else names
