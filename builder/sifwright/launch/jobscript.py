"""Render a job as a batch script: one template for each scheduler, all on one base."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sifwright.catalog import site_environment
from sifwright.catalog.model import Modules
from sifwright.errors import PlanError, quoted
from sifwright.launch import directives, launch_command
from sifwright.launch.job import Job, JobRequest
from sifwright.render import shell
from sifwright.render.templating import template

# Where Lmod and Environment Modules define the command 'module', if a site's file does not say.
_MODULE_INITS = (
    '"${LMOD_PKG:-}/init/bash"',
    '"${MODULESHOME:-}/init/bash"',
    "/etc/profile.d/{lmod,modules,z00_lmod,zz_modules}.sh",
)
# Text that every scheduler takes from a directive unchanged.
_WORD = re.compile(r"[A-Za-z0-9_.,:=+@%/&|*!()\[\]{} -]+")


def render_jobscript(job: Job) -> str:
    """Return the text of the batch script, ready to be submitted."""
    return template(f"launch/templates/{job.site.scheduler}.sh.j2", ("word", _word)).render(
        job=job,
        shape=_shape(job),
        mark=directives.MARKS.get(job.site.scheduler, ""),
        directives=[str(directive) for directive in directives.directives(job)],
        modules=list(_modules(job)),
        variables=_variables(job),
        launch=launch_command.command(job),
    )


def _word(value: str) -> str:
    """Return a value for a directive; schemas and rules refuse other values before."""
    if _WORD.fullmatch(value):
        return value
    fix = "Use letters, digits and plain punctuation."
    raise PlanError.of(f"{quoted(value)} cannot stand in a directive", where="job script", fix=fix)


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


def ready_for_modules(modules: Modules) -> Iterator[str]:
    """Yield the lines that prepare a job of the site for loading modules."""
    if modules.init:
        yield f"command -v module >/dev/null || source {shell.path(modules.init)}"
    if modules.purge:
        yield "module --force purge" if modules.purge == "force" else "module purge"


def _modules(job: Job) -> Iterator[str]:
    modules, request = job.site.modules, job.request
    names = modules.host if job.run_in == "host" else modules.container
    if request.host_mpi and job.site.host_mpi:
        names += job.site.host_mpi.modules
    if not names and not request.modules:
        return
    yield from _module_command(modules.init)
    keep = bool(modules.purge) and job.run_in == "container" and not request.modules
    if keep:
        yield "image_module=${SIFWRIGHT_MODULE:-} # it would be unloaded with its image and binds"
    if modules.purge:
        yield "module --force purge" if modules.purge == "force" else "module purge"
    if names:
        yield f"module load {' '.join(map(shell.quote, names))}"
    if keep:
        yield '[[ -z $image_module ]] || module load "$image_module"'
    yield from _asked_modules(request)
    if modules.library_path and job.run_in == "host":
        path = shell.path(modules.library_path)
        yield f'export LD_LIBRARY_PATH={path}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'


def _module_command(init: str) -> Iterator[str]:
    """Yield lines that define `module`, which batch shells may lack."""
    if init:
        yield "# shellcheck source=/dev/null"
        yield f"command -v module >/dev/null || source {shell.path(init)}"
        return
    yield "for init in " + " ".join(_MODULE_INITS) + "; do"
    yield "  # shellcheck source=/dev/null"
    yield '  command -v module >/dev/null || [[ ! -r $init ]] || source "$init"'
    yield "done"


def _asked_modules(request: JobRequest) -> Iterator[str]:
    """Load the modules of the request as if the submitting shell had not loaded them."""
    if not request.modules:
        return
    families = [name.rpartition("/")[0] or name for name in reversed(request.modules)]
    yield f"module unload {' '.join(map(shell.quote, families))}"
    yield "unset SIF"
    for path in reversed(request.module_paths):
        yield f"module use {shell.quote(path)}"
    yield f"module load {' '.join(map(shell.quote, request.modules))}"
