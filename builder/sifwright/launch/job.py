"""Decide a job: the number of tasks and nodes, the launcher, and the image or environment."""

import getopt
from pathlib import PurePath

from sifwright.catalog.model import Site
from sifwright.errors import UsageError
from sifwright.launch import directive_rules, job_mpi, job_rules
from sifwright.launch.model import Job, JobRequest

_PYTHON_OPTIONS = "bBdEhiIOPqsSuvVxW:X:c:m:"  # options with a value have a colon (python --help)


def decide_job(site: Site, request: JobRequest) -> Job:
    """Fill in what the request leaves to the site.

    Raises `UsageError` with everything the site or its scheduler would refuse.
    """
    if problems := list(job_rules.job_problems(site, request)):
        raise UsageError(*problems)
    job = arrange_job(site, request)
    if problems := [*directive_rules.contradictions(job), *job_mpi.mpi_problems(job)]:
        raise UsageError(*problems)
    return job


def arrange_job(site: Site, request: JobRequest) -> Job:
    """Fill in what the request leaves to the site, without any check."""
    ranks = request.ranks_per_node or site.node.gpus or 1
    alone = site.launcher == "local" and request.launcher in ("", "local") and ranks > 1
    torchrun = request.launcher == job_rules.TORCHRUN or alone
    tasks = 1 if torchrun else ranks
    return Job(
        site=site,
        request=request,
        run_in=job_rules.run_in(site, request),
        launcher=job_rules.launcher(site, request),
        torchrun=torchrun,
        ranks=ranks,
        tasks=tasks,
        # Without a number of GPUs in the site's file, count one for each rank.
        gpus=site.node.gpus or (0 if site.vendor == "cpu" else ranks),
        cpus=(site.node.cpus_per_task if tasks > 1 else 0) or site.node.cpus // tasks,
        name=request.name or _name(request.arguments),
        time=request.time or site.job.time,
    )


def _name(arguments: tuple[str, ...]) -> str:
    """Return the name of the script or module that Python runs, behind Python's own options."""
    try:
        options, rest = getopt.getopt(list(arguments), _PYTHON_OPTIONS)
    except getopt.GetoptError:
        options, rest = [], []
    modules = [value for option, value in options if option == "-m"]
    name = modules[0] if modules else PurePath(rest[0] if rest else "").stem
    code = any(option == "-c" for option, _ in options)
    return name if job_rules.WORD.fullmatch(name) and not code else "sifwright"
