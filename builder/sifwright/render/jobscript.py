"""Render a job as a batch script: one template for each scheduler, all on one base."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sifwright import siteenvironment
from sifwright.errors import PlanError, quoted
from sifwright.render import launch, shell
from sifwright.templating import template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.job import Job

__all__ = ["script"]

# What every scheduler takes from a directive as it stands there.
_WORD = re.compile(r"[A-Za-z0-9_.,:=+@%/&|*!()\[\] -]+")


def script(job: Job) -> str:
    """The text of the batch script, ready to be submitted."""
    filters = (("word", _word), ("seconds", _seconds))
    return template(f"job/{job.site.scheduler}.sh.j2", *filters).render(
        job=job,
        shape=_shape(job),
        directives=list(_directives(job)),
        modules=list(_modules(job)),
        variables=_variables(job),
        launch=launch.command(job),
    )


def _word(value: str) -> str:
    """A value for a directive; schemas and rules let no other reach this."""
    if _WORD.fullmatch(value):
        return value
    fix = "Use letters, digits and plain punctuation."
    raise PlanError.of(f"{quoted(value)} cannot stand in a directive", where="job script", fix=fix)


def _seconds(time: str) -> int:
    hours, minutes, seconds = map(int, time.split(":"))
    return (hours * 60 + minutes) * 60 + seconds


def _shape(job: Job) -> str:
    nodes = f"{job.request.nodes} node{'s' if job.request.nodes > 1 else ''}"
    ranks = f"{job.ranks} rank{'s' if job.ranks > 1 else ''}"
    return f"{nodes}, {ranks} on each{', started by torchrun' if job.torchrun else ''}"


def _directives(job: Job) -> Iterator[str]:
    for name, value in job.site.job.directives.items():
        dashes, between = ("-", " ") if len(name) == 1 else ("--", "=")
        if value is True:
            yield f"{dashes}{name}"
        elif value:
            yield f"{dashes}{name}{between}{value}"


def _variables(job: Job) -> dict[str, str]:
    """What the script exports, unless it is set: in a container, the image brings the site's."""
    site = job.site
    if job.engine == "native":
        return siteenvironment.variables(site, job.request.nodes) | dict(site.mpi_environment)
    if job.request.host_mpi and site.host_mpi:
        return {**site.mpi_environment, **site.host_mpi.environment}
    return {}


def _modules(job: Job) -> Iterator[str]:
    modules = job.site.modules
    names = modules.native if job.engine == "native" else modules.container
    if job.request.host_mpi and job.site.host_mpi:
        names += job.site.host_mpi.modules
    if not names:
        return
    if modules.init:
        yield "# shellcheck source=/dev/null"
        yield f"command -v module >/dev/null || source {shell.path(modules.init)}"
    if modules.purge:
        yield "module --force purge" if modules.purge == "force" else "module purge"
    yield f"module load {' '.join(map(shell.quote, names))}"
    if modules.library_path and job.engine == "native":
        path = shell.path(modules.library_path)
        yield f'export LD_LIBRARY_PATH={path}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
