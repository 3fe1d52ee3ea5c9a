"""Check before submission that the ranks of a job find each other by MPI."""

import re
from collections.abc import Iterator

from sifwright.catalog import pmi
from sifwright.catalog.pmi import ImageMpi
from sifwright.errors import Problem, quoted
from sifwright.launch.model import Job

NO_MPI = "none"  # as srun calls it
_PLUGIN = re.compile(r"[a-z][a-z0-9_]{0,31}")
_WITHOUT = f"For a program without MPI: --pmi {NO_MPI}."
# Programs that come with an MPI.
_OF_MPI = ("mpirun", "mpiexec")


def environment_mpi(job: Job) -> str:
    """Return the MPI that a layer has installed in the job's environment; empty without one."""
    mpi = job.request.mpi
    return mpi.name if mpi and job.run_in == "host" and not mpi.of_base else ""


def is_open_mpi(job: Job) -> bool:
    """Return whether the launcher is of Open MPI: its options differ from those of MPICH."""
    spoken = _spoken(job, job.launcher)
    return job.launcher in _OF_MPI and any(name.startswith("pmix") for name in spoken)


def exports_by_name(job: Job) -> bool:
    """Return whether only those variables reach other nodes that the command names."""
    return is_open_mpi(job) and job.request.nodes > 1


def plugin(job: Job) -> str:
    """Return the value of srun's --mpi; empty for the default of the site."""
    request, names = job.request, job.site.offered_pmi(job.launcher)
    if job.launcher != "srun" or job.torchrun:
        return ""
    return request.pmi or next(pmi.common(names, request.mpi) if request.mpi else iter(()), "")


def mpi_problems(job: Job) -> Iterator[Problem]:
    """Yield why the MPI of the image and the launcher of the ranks share no PMI.

    The MPI of the site itself goes with the site's launchers.
    """
    request, names = job.request, _spoken(job, job.launcher)
    if request.pmi and (refused := list(_pmi_problems(job, names))):
        yield from refused
        return
    mpi = request.mpi
    of_site = request.host_mpi or (job.run_in == "host" and not environment_mpi(job))
    if of_site or mpi is None or not mpi.pmi or request.pmi == NO_MPI:
        return
    requested = (request.pmi,) if request.pmi else names
    if job.torchrun and not mpi.of_base:
        yield _by_torchrun(job, mpi)
    elif job.torchrun or job.launcher == "local":
        return
    elif not requested:
        yield _not_said(job, mpi)
    elif not any(pmi.common(requested, mpi)):
        yield _nothing_common(job, mpi, requested)


def mpi_notes(job: Job) -> Iterator[str]:
    """Yield doubts that refuse nothing: ranks unknown to MPI, or an unknown MPI."""
    mpi = job.request.mpi
    if mpi is None or not mpi.name or job.request.pmi == NO_MPI:
        return
    programs = "programs of mpi4py or Horovod end at once"
    if job.torchrun:
        yield f"torchrun does not start MPI ranks: with it, {programs} (image: {mpi})"
    elif mpi.name == pmi.UNKNOWN:
        yield (
            f"the MPI of {mpi.source} is not known here:"
            f" if it shares no PMI with {job.launcher}, {programs}"
        )


def _spoken(job: Job, launcher: str) -> tuple[str, ...]:
    """Return the PMIs of a launcher; that of the environment's MPI speaks what this MPI does."""
    if launcher in _OF_MPI and environment_mpi(job) and job.request.mpi:
        return job.request.mpi.pmi
    return job.site.offered_pmi(launcher)


def _pmi_problems(job: Job, names: tuple[str, ...]) -> Iterator[Problem]:
    requested, launcher = job.request.pmi, "torchrun" if job.torchrun else job.launcher
    where = f"--pmi {quoted(requested)}"
    if not _PLUGIN.fullmatch(requested):
        fix = f"Give a name that 'srun --mpi=list' shows, or {NO_MPI}."
        yield Problem(where=where, what="is no name of a plugin of srun", fix=fix)
    elif requested == NO_MPI:
        return
    elif launcher != "srun":
        message = f"only srun takes the name of a PMI, not {launcher}"
        yield Problem(where=where, what=message, fix="Leave it out, or start the ranks with srun.")
    elif names and requested not in names:
        message = f"srun speaks {_listed(names)} ({_fact(job)})"
        yield Problem(where=where, what=message, fix=f"Use one of: {', '.join((*names, NO_MPI))}.")


def _by_torchrun(job: Job, mpi: ImageMpi) -> Problem:
    message = f"torchrun starts no MPI ranks, and the image has {mpi}: each rank would be alone"
    fix = " ".join((*_ways(job, mpi), _WITHOUT))
    return Problem(where="launcher torchrun", what=message, fix=fix)


def _not_said(job: Job, mpi: ImageMpi) -> Problem:
    fix = f"Add launch.{job.launcher}.pmi to the file of the site"
    if job.launcher == "srun":
        fix += ", or give --pmi NAME, as 'srun --mpi=list' shows them there"
    return Problem(
        where=f"launcher {job.launcher}",
        what=f"the image has {mpi}, which {_listed(mpi.pmi)} starts,"
        f" and nothing says what {job.launcher} speaks ({_fact(job)})",
        fix=f"{fix}. {_WITHOUT}",
    )


def _nothing_common(job: Job, mpi: ImageMpi, names: tuple[str, ...]) -> Problem:
    origin = f"--pmi {job.request.pmi}" if job.request.pmi else _fact(job)
    return Problem(
        where=f"launcher {job.launcher}",
        what=f"it speaks {_listed(names)} ({origin}), and the image has {mpi},"
        f" which {_listed(mpi.pmi)} starts: each rank would be alone, or abort",
        fix=" ".join((*_ways(job, mpi), _WITHOUT)),
    )


def _fact(job: Job) -> str:
    """Return the fact that says what the launcher speaks."""
    options = job.site.launch.get(job.launcher)
    if job.launcher == "mpirun" and not (options and options.pmi):
        return "as that of Open MPI"
    return f"launch.{job.launcher}.pmi of site '{job.site.name}'"


def _ways(job: Job, mpi: ImageMpi) -> Iterator[str]:
    """Yield options that would start these ranks together."""
    site = job.site
    for launcher in site.launchers:
        if fitting := list(pmi.common(_spoken(job, launcher), mpi)):
            option = f" --pmi {fitting[0]}" if launcher == "srun" and job.request.pmi else ""
            yield f"Use --launcher {launcher}{option}."
    if site.host_mpi:
        yield "Use --host-mpi, which brings the MPI of the site."
    open_names = [name for name in site.offered_pmi(job.launcher) if name.startswith("pmi")]
    if open_names and not job.torchrun:
        yield f"Use an image with an MPI that is started by {_listed(tuple(open_names))}."


def _listed(names: tuple[str, ...]) -> str:
    return " or ".join(names)
