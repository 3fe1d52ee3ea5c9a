"""Rules of a site and its scheduler for jobs, checked before submission."""

import re
from collections.abc import Iterator

from sifwright.catalog.model import Site
from sifwright.catalog.schema import did_you_mean
from sifwright.errors import Problem, quoted
from sifwright.launch import directive_rules
from sifwright.launch.model import JobRequest

TORCHRUN = "torchrun"
# Variables with the account of one's jobs: sbatch's own, and NCAR's for PBS.
ACCOUNTS = {"slurm": "SBATCH_ACCOUNT", "pbs": "PBS_ACCOUNT"}
MAX_COUNT = 100_000
_COUNT = f"Ask for 1 to {MAX_COUNT}."
# Schedulers read directives with rules of their own for quotes, blanks and '#': plain words only.
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,63}")
_TIME = re.compile(r"[0-9]{2,3}:[0-5][0-9]:[0-5][0-9]")
_SIGNAL = re.compile(r"(B:)?[A-Z0-9]{1,8}@[0-9]{1,5}")
# The run scripts expand WITH_CONDA unquoted: it is split at blanks, and * ? [ match files.
# Half of a pair of surrogates; those of U+DC80 to U+DCFF stand for bytes that are not UTF-8.
_UNSPEAKABLE = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")
_MODULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/-]{0,254}")
_VENV = re.compile(r"[^-\s*?\[\]\\][^\s*?\[\]\\]*")


def job_problems(site: Site, request: JobRequest) -> Iterator[Problem]:
    """Yield every reason why this site cannot run that job."""
    for check in (
        *(_nodes, _ranks, _launcher, _run_in, _host_mpi),
        *(_directives, _words, _modules, _arguments),
    ):
        yield from check(site, request)
    yield from directive_rules.directive_problems(site, request)


def launcher(site: Site, request: JobRequest) -> str:
    """Return the program that starts the tasks.

    Torchrun is started once per node, by the site's own.
    """
    return site.launcher if request.launcher in ("", TORCHRUN) else request.launcher


def run_in(site: Site, request: JobRequest) -> str:
    """Return where the job runs; the name of an environment asks for the host."""
    return request.run_in or ("host" if request.environment else site.run_in[0])


def _nodes(site: Site, request: JobRequest) -> Iterator[Problem]:
    where = f"--nodes {request.nodes}"
    if not 1 <= request.nodes <= MAX_COUNT:
        yield Problem(where=where, what="not a number of nodes", fix=_COUNT)
    elif request.nodes > 1 and site.scheduler == "local":
        message = f"site '{site.name}' is one machine: it has no scheduler"
        yield Problem(where=where, what=message, fix="Use --nodes 1, or another site.")


def _ranks(site: Site, request: JobRequest) -> Iterator[Problem]:
    ranks, gpus = request.ranks_per_node, site.node.gpus
    where = f"--tasks-per-node {ranks}"
    if ranks is None:
        if not gpus and site.vendor != "cpu":
            message = f"site '{site.name}' does not say how many GPUs a node has"
            fix = "Give --tasks-per-node N, or add node.gpus to its file."
            yield Problem(where="--tasks-per-node", what=message, fix=fix)
    elif not 1 <= ranks <= MAX_COUNT:
        yield Problem(where=where, what="not a number of ranks", fix=_COUNT)
    elif gpus and ranks > gpus:
        message = f"a node of site '{site.name}' has {gpus} GPUs, one for each rank"
        yield Problem(where=where, what=message, fix=f"Ask for at most {gpus}.")


def _launcher(site: Site, request: JobRequest) -> Iterator[Problem]:
    known = (site.launcher, *site.other_launchers, TORCHRUN)
    if request.launcher and request.launcher not in known:
        message = f"site '{site.name}' does not start jobs with it"
        fix = did_you_mean(request.launcher, known)
        yield Problem(where=f"--launcher {request.launcher}", what=message, fix=fix)


def _run_in(site: Site, request: JobRequest) -> Iterator[Problem]:
    chosen = run_in(site, request)
    if chosen not in site.run_in:
        where = "in a container" if chosen == "container" else "on the host"
        message = f"site '{site.name}' runs no jobs {where}"
        fix = f"Use --run-in {' or '.join(site.run_in)}."
        yield Problem(where=f"--run-in {chosen}", what=message, fix=fix)
    elif chosen == "host" and not (request.environment or request.modules):
        message = "a job on the host runs in an environment, and none is named"
        fix = "Give --environment DIR, or --module NAME of one."
        yield Problem(where="--environment", what=message, fix=fix)
    elif chosen == "container" and request.environment:
        where = f"--environment {quoted(request.environment)}"
        message = "a job in a container does not use an environment of the host"
        yield Problem(where=where, what=message, fix="Leave it out, or use --run-in host.")
    if request.stage and chosen == "host" and not request.environment:
        message = "only an image or an environment can be copied to the nodes"
        yield Problem(where="--stage", what=message, fix="Give --environment DIR.")
    if chosen == "container" and site.delivery != "sif" and (request.stage or request.modules):
        message = f"{site.container_product} takes no image of a module, and none from the nodes"
        option = "--stage" if request.stage else "--module"
        yield Problem(where=option, what=message, fix="Leave it out.")
    if chosen == "host" and request.sif:
        message = "a job on the host runs in no image"
        fix = "Leave it out, or use --run-in container."
        yield Problem(where=f"--sif {quoted(request.sif)}", what=message, fix=fix)


def _host_mpi(site: Site, request: JobRequest) -> Iterator[Problem]:
    """Yield reasons why the site's MPI cannot replace the image's."""
    if not request.host_mpi:
        return
    where = "--host-mpi"
    if run_in(site, request) == "host":
        message = "a job on the host runs in no image, and has the site's MPI already"
        yield Problem(where=where, what=message, fix="Leave it out.")
    elif site.host_mpi is None:
        message = f"site '{site.name}' does not say what brings its MPI into a container"
        yield Problem(where=where, what=message, fix="Leave it out, or add mpi.host to its file.")
    if request.launcher == TORCHRUN:
        message = "torchrun does not start MPI ranks"
        fix = f"Leave it out, or use {launcher(site, request)}."
        yield Problem(where=where, what=message, fix=fix)


def _directives(site: Site, request: JobRequest) -> Iterator[Problem]:
    if site.job.needs_account and not request.account:
        message = f"the scheduler of site '{site.name}' refuses jobs without an account"
        variable = ACCOUNTS.get(site.scheduler, "")
        fix = f"Name your project: --account PROJECT{f', or set {variable}' if variable else ''}."
        yield Problem(where="--account", what=message, fix=fix)
    for key in ("account", "name", "time", "signal"):
        if getattr(request, key) and site.scheduler == "local":
            message = f"site '{site.name}' has no scheduler that could read it"
            yield Problem(where=_option(request, key), what=message, fix="Leave it out.")
    if request.signal and site.scheduler == "pbs":
        message = "PBS sends no signal before the time is up but SIGTERM"
        yield Problem(where=f"--signal {quoted(request.signal)}", what=message, fix="Leave it out.")


def _words(_site: Site, request: JobRequest) -> Iterator[Problem]:
    plain = "Use a letter or digit, then letters, digits and _ . + @ -, 64 at most."
    for key, form, fix in (
        ("account", WORD, plain),
        ("name", WORD, plain),
        ("time", _TIME, "Write HH:MM:SS, for example 01:30:00."),
        ("signal", _SIGNAL, "Write NAME@SECONDS, for example USR1@120."),
        ("environment", _VENV, "Name a folder without blanks and * ? [ ] \\ in its path."),
    ):
        value = getattr(request, key)
        if value and not (form.fullmatch(value) and value.isprintable()):
            where = _option(request, key)
            yield Problem(where=where, what="cannot stand in a job script", fix=fix)


def _option(request: JobRequest, key: str) -> str:
    """Return the option, or the variable of the environment, with its value."""
    value = quoted(getattr(request, key))
    if key == "account" and request.account_variable:
        return f"{request.account_variable}={value}"
    return f"--{key} {value}"


def _modules(_site: Site, request: JobRequest) -> Iterator[Problem]:
    for name in request.modules:
        if not _MODULE.fullmatch(name):
            fix = "Write it as 'module load' takes it, as in PyTorch/2.10.0-rocm-7.0.2."
            yield Problem(where=f"--module {quoted(name)}", what="is no module's name", fix=fix)
    for path in request.module_paths:
        where = f"--module-path {quoted(path)}"
        if not path.startswith("/") or ":" in path or not path.isprintable():
            message, fix = "is no absolute path", "Name the folder from '/' on, one a time."
            yield Problem(where=where, what=message, fix=fix)
        elif not request.modules:
            message, fix = "no module is named that would be there", "Give --module NAME, too."
            yield Problem(where=where, what=message, fix=fix)


def _arguments(_site: Site, request: JobRequest) -> Iterator[Problem]:
    if not request.arguments or not request.arguments[0]:
        message = "no Python script is named"
        fix = "Put it behind '--': … -- train.py --epochs 3"
        yield Problem(where="SCRIPT", what=message, fix=fix)
    if request.sif.startswith("-"):
        message = "would be taken for an option of the container program"
        where = f"--sif {quoted(request.sif)}"
        yield Problem(where=where, what=message, fix="Put ./ before it.")
    for value in (*request.arguments, request.sif):
        if _UNSPEAKABLE.search(value):
            fix = "Leave it out: no program can be given one."
            yield Problem(where=quoted(value), what="holds a NUL or half a character", fix=fix)
