"""What a site or its scheduler refuses of a job, said before it is submitted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sifwright.errors import Problem, quoted
from sifwright.schema import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.job import Request
    from sifwright.model import Site

__all__ = ["TORCHRUN", "engine", "is_word", "launcher", "problems"]

TORCHRUN = "torchrun"
MAX_COUNT = 100_000
_COUNT = f"Ask for 1 to {MAX_COUNT}."
# Schedulers read directives with rules of their own for quotes, blanks and '#': plain words only.
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,63}")
_TIME = re.compile(r"[0-9]{2,3}:[0-5][0-9]:[0-5][0-9]")
_SIGNAL = re.compile(r"(B:)?[A-Z0-9]{1,8}@[0-9]{1,5}")
# The run scripts expand WITH_CONDA unquoted: it is split at blanks, and * ? [ match files.
# Half of a pair of surrogates; those of U+DC80 to U+DCFF stand for bytes that are not UTF-8.
_UNSPEAKABLE = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")
_VENV = re.compile(r"[^-\s*?\[\]\\][^\s*?\[\]\\]*")


def problems(site: Site, request: Request) -> Iterator[Problem]:
    """Yield every reason why this site cannot run that job."""
    for check in (_nodes, _ranks, _launcher, _engine, _host_mpi, _directives, _words, _arguments):
        yield from check(site, request)


def launcher(site: Site, request: Request) -> str:
    """What starts the tasks; torchrun is started by the site's own launcher, once on each node."""
    return site.launcher if request.launcher in ("", TORCHRUN) else request.launcher


def engine(site: Site, request: Request) -> str:
    """A virtual environment is asked for by naming one."""
    return request.engine or ("native" if request.environment else site.engines[0])


def is_word(text: str) -> bool:
    """Whether a directive carries the text as it is, whichever scheduler reads it."""
    return _WORD.fullmatch(text) is not None


def _nodes(site: Site, request: Request) -> Iterator[Problem]:
    where = f"--nodes {request.nodes}"
    if not 1 <= request.nodes <= MAX_COUNT:
        yield Problem(where=where, what="not a number of nodes", fix=_COUNT)
    elif request.nodes > 1 and site.scheduler == "local":
        what = f"site '{site.name}' is one machine: it has no scheduler"
        yield Problem(where=where, what=what, fix="Use --nodes 1, or another site.")


def _ranks(site: Site, request: Request) -> Iterator[Problem]:
    ranks, gpus = request.ranks_per_node, site.node.gpus
    where = f"--tasks-per-node {ranks}"
    if ranks is None:
        if not gpus and site.vendor != "cpu":
            what = f"site '{site.name}' does not say how many GPUs a node has"
            fix = "Give --tasks-per-node N, or add node.gpus to its file."
            yield Problem(where="--tasks-per-node", what=what, fix=fix)
    elif not 1 <= ranks <= MAX_COUNT:
        yield Problem(where=where, what="not a number of ranks", fix=_COUNT)
    elif gpus and ranks > gpus:
        what = f"a node of site '{site.name}' has {gpus} GPUs, one for each rank"
        yield Problem(where=where, what=what, fix=f"Ask for at most {gpus}.")


def _launcher(site: Site, request: Request) -> Iterator[Problem]:
    known = (site.launcher, *site.other_launchers, TORCHRUN)
    if request.launcher and request.launcher not in known:
        what = f"site '{site.name}' does not start jobs with it"
        fix = did_you_mean(request.launcher, known)
        yield Problem(where=f"--launcher {request.launcher}", what=what, fix=fix)


def _engine(site: Site, request: Request) -> Iterator[Problem]:
    chosen = engine(site, request)
    if chosen not in site.engines:
        what = f"site '{site.name}' runs no jobs with engine '{chosen}'"
        fix = f"Use --engine {' or '.join(site.engines)}."
        yield Problem(where=f"--engine {chosen}", what=what, fix=fix)
    elif chosen == "native" and not request.environment:
        what = "engine 'native' runs in a virtual environment, and none is named"
        yield Problem(where="--environment", what=what, fix="Give --environment DIR.")
    elif chosen == "container" and request.environment:
        where = f"--environment {quoted(request.environment)}"
        what = "a virtual environment is for engine 'native'"
        yield Problem(where=where, what=what, fix="Leave it out, or use --engine native.")
    if chosen == "native" and request.sif:
        what = "engine 'native' runs in no image"
        fix = "Leave it out, or use --engine container."
        yield Problem(where=f"--sif {quoted(request.sif)}", what=what, fix=fix)


def _host_mpi(site: Site, request: Request) -> Iterator[Problem]:
    """The site's MPI in place of the image's."""
    if not request.host_mpi:
        return
    where = "--host-mpi"
    if engine(site, request) == "native":
        what = "engine 'native' runs in no image, and has the site's MPI already"
        yield Problem(where=where, what=what, fix="Leave it out.")
    elif site.host_mpi is None:
        what = f"site '{site.name}' does not say what brings its MPI into a container"
        yield Problem(where=where, what=what, fix="Leave it out, or add mpi.host to its file.")
    if request.launcher == TORCHRUN:
        what = "ranks that torchrun starts are none of MPI's"
        yield Problem(
            where=where, what=what, fix=f"Leave it out, or use {launcher(site, request)}."
        )


def _directives(site: Site, request: Request) -> Iterator[Problem]:
    """Options that a scheduler needs, or has no use for."""
    if site.job.needs_account and not request.account:
        what = f"the scheduler of site '{site.name}' refuses jobs without an account"
        yield Problem(where="--account", what=what, fix="Name your project: --account PROJECT.")
    given = {key: getattr(request, key) for key in ("account", "name", "time", "signal")}
    for key, value in given.items():
        if value and site.scheduler == "local":
            what = f"site '{site.name}' has no scheduler that could read it"
            yield Problem(where=f"--{key} {quoted(value)}", what=what, fix="Leave it out.")
    if request.signal and site.scheduler == "pbs":
        what = "PBS sends no signal before the time is up but SIGTERM"
        yield Problem(where=f"--signal {quoted(request.signal)}", what=what, fix="Leave it out.")


def _words(_site: Site, request: Request) -> Iterator[Problem]:
    plain = "Use a letter or digit, then letters, digits and _ . + @ -, 64 at most."
    for key, form, fix in (
        ("account", _WORD, plain),
        ("name", _WORD, plain),
        ("time", _TIME, "Write HH:MM:SS, for example 01:30:00."),
        ("signal", _SIGNAL, "Write NAME@SECONDS, for example USR1@120."),
        ("environment", _VENV, "Name a folder without blanks and * ? [ ] \\ in its path."),
    ):
        value = getattr(request, key)
        if value and not (form.fullmatch(value) and value.isprintable()):
            where = f"--{key} {quoted(value)}"
            yield Problem(where=where, what="cannot stand in a job script", fix=fix)


def _arguments(_site: Site, request: Request) -> Iterator[Problem]:
    if not request.arguments or not request.arguments[0]:
        what = "no Python script is named"
        yield Problem(where="SCRIPT", what=what, fix="Put it behind '--': … -- train.py --epochs 3")
    if request.sif.startswith("-"):
        what = "would be taken for an option of the container program"
        where = f"--sif {quoted(request.sif)}"
        yield Problem(where=where, what=what, fix="Put ./ before it.")
    for value in (*request.arguments, request.sif):
        if _UNSPEAKABLE.search(value):
            fix = "Leave it out: no program can be given one."
            yield Problem(where=quoted(value), what="holds a NUL or half a character", fix=fix)
