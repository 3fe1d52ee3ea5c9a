"""`sifwright check-comm`: time the collectives in an image, and prove the network they use."""

import json
import re
import shlex
import shutil
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sifwright.catalog.model import Site
from sifwright.catalog.project_folder import project_folder
from sifwright.errors import MachineError, Problem, TestError, UsageError, quoted
from sifwright.launch import job_image_mpi
from sifwright.launch.comm import nccl_log, results, start
from sifwright.launch.comm import verdict as comm_verdict
from sifwright.launch.comm.nccl_log import Process
from sifwright.launch.comm.verdict import Verdict
from sifwright.make_image.check_machine import preflight
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.system import files, processes, small_file
from sifwright.system.tempdirs import workspace

_JSON, _LOG = "comm.json", "comm.log"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SAYS, _RUN_SCRIPT_SAYS = "collectives.py: ", "conda-python-distributed: "
_REFUSALS = (65, 69, 78)  # of the run script (runscripts/launch/errors.py)


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkRequest:
    """The options of the benchmark; 0 and '' leave the choice to the site. Sizes in bytes.

    With `environment`, a folder of the host, the benchmark of `run_scripts` runs there.
    """

    nodes: int = 0
    ranks_per_node: int = 0
    backend: str = ""
    min_size: int = 1 << 10
    max_size: int = 512 << 20
    launch: str = ""
    environment: str = ""
    run_scripts: Path = Path()


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkResult:
    """Measurements (docs/how-to/check-network.md), the verdict, and the files that hold them."""

    document: Mapping[str, Any]
    verdict: Verdict
    status: int
    files: tuple[Path, ...]


def request(arguments: Namespace) -> BenchmarkRequest:
    """Return the request of the command line; raises `UsageError`."""
    if min(arguments.nodes, arguments.ranks_per_node) < 0:
        message = "--nodes and --ranks-per-node are numbers of at least 1"
        raise UsageError.of(message, fix="Leave them out to take what the allocation has.")
    smallest, largest = _size(arguments.min_size), _size(arguments.max_size)
    if smallest > largest:
        message = f"--min-size {arguments.min_size} is above --max-size {arguments.max_size}"
        raise UsageError.of(message, fix="Exchange them.")
    try:
        shlex.split(arguments.launch)
    except ValueError as error:
        message = f"--launch has a quote without its partner: {arguments.launch}"
        raise UsageError.of(message, fix="Add the other one.") from error
    return BenchmarkRequest(
        nodes=arguments.nodes,
        ranks_per_node=arguments.ranks_per_node,
        backend=arguments.backend,
        min_size=smallest,
        max_size=largest,
        launch=arguments.launch,
        environment=arguments.environment,
        run_scripts=project_folder(arguments.project) / "runscripts",
    )


def _size(text: str) -> int:
    """Read 4096, 1K, 512M or 2G, units being powers of 1024."""
    match = re.fullmatch(r"([1-9][0-9]{0,11})([KMG]?)", text.upper())
    if match is None:
        raise UsageError.of(f"{quoted(text)} is no size", fix="Write it as 4096, 1K, 512M or 2G.")
    return int(match[1]) * _UNITS[match[2]]


def check_comm(
    site: Site, output: ImageFolder, wanted: BenchmarkRequest, on_line: Callable[[str], None]
) -> BenchmarkResult:
    """Run the benchmark and keep its results, good or bad; `on_line` gets its output.

    Raises `MachineError` if the benchmark cannot run, `TestError` if it breaks. The caller judges
    the measurements by `problems`.
    """
    with workspace(output.folder) as work_dir:
        environment = start.environment(site)
        command = _command(site, output, wanted, work_dir, environment)
        with _kept_log(work_dir, output.folder / _LOG):
            status = processes.stream(
                command, log=work_dir / _LOG, on_line=on_line, env=environment
            )
        log = (work_dir / _LOG).read_text(errors="replace", encoding="utf-8")
        if not (work_dir / _JSON).exists():
            raise _broken(site, output, status, log)
        measured = small_file.read_json(work_dir / _JSON)
        document, verdict = _judged(site, output, measured, log)
        kept = _publish(output, work_dir, document)
        return BenchmarkResult(document=document, verdict=verdict, status=status, files=kept)


def failures(result: BenchmarkResult) -> tuple[Problem, ...]:
    """Return the failures of a run: wrong values, another network than the site's, a bad end."""
    rows = [row for row in result.document["rows"] if row.get("wrong_elements")]
    wrong = [
        Problem(
            where=f"{row['operation']} of {row['bytes']} bytes",
            what=f"{row['wrong_elements']} elements of a rank's result are wrong",
            fix="Train nothing here before this is mended: see docs/how-to/check-network.md.",
        )
        for row in rows
    ]
    if result.status and not rows:
        message = f"the benchmark ended with exit status {result.status}, after its last result"
        wrong.append(Problem(what=message, fix=f"Whole log: {result.files[-1]}"))
    return (*wrong, *result.verdict.problems)


def _command(
    site: Site,
    output: ImageFolder,
    wanted: BenchmarkRequest,
    work_dir: Path,
    environ: Mapping[str, str],
) -> list[str]:
    """Return the whole command line; a launcher given by hand brings its own numbers of ranks."""
    before, local, nodes = shlex.split(wanted.launch), [], max(wanted.nodes, 1)
    if not before:
        shape = start.shape(site, wanted.nodes, wanted.ranks_per_node)
        mpi = (
            job_image_mpi.of_environment(wanted.environment)
            if wanted.environment
            else job_image_mpi.of_record(output.link)
        )
        shape = replace(shape, environment=wanted.environment, mpi=mpi)
        nodes, before = shape.nodes, start.launcher(site, shape, environ)
        local = [] if before else ["--nproc-per-node", str(shape.ranks_per_node)]
    if before and shutil.which(before[0]) is None:
        fix = "Load its module, or start the ranks with another one: --launch."
        raise MachineError.of(f"there is no {quoted(before[0])} on PATH", fix=fix)
    if wanted.environment:
        script = str(wanted.run_scripts / Path(start.SCRIPT).name)
        program = [*local, script, *_options(site, wanted, str(work_dir.absolute()))]
        run_scripts = wanted.run_scripts
        return [*before, *start.on_host(site, wanted.environment, run_scripts, nodes, program)]
    program = [*local, start.SCRIPT, *_options(site, wanted, start.WORK)]
    engine = preflight.engine()
    return [*before, *start.container(engine, site, output.link, work_dir, program)]


def _options(site: Site, wanted: BenchmarkRequest, results_folder: str) -> list[str]:
    """Return the options of the benchmark; --backend nccl, because gloo would hide missing GPUs."""
    backend = wanted.backend or ("gloo" if site.vendor == "cpu" else "nccl")
    return [
        *("--backend", backend, "--json", f"{results_folder}/{_JSON}"),
        *("--min-size", str(wanted.min_size), "--max-size", str(wanted.max_size)),
        *(("--nccl-log", results_folder) if backend == "nccl" else ()),
    ]


@contextmanager
def _kept_log(work_dir: Path, target: Path) -> Iterator[None]:
    """Add NCCL's files to the log, one file per process, and keep the log after errors, too."""
    try:
        yield
    finally:
        with (work_dir / _LOG).open("a", encoding="utf-8") as log:
            for path in sorted(work_dir.glob("nccl.*.log")):
                log.write(path.read_text(errors="replace", encoding="utf-8"))
        shutil.copy(work_dir / _LOG, work_dir / f"{_LOG}.copy")
        files.publish(work_dir / f"{_LOG}.copy", target)


def _broken(site: Site, output: ImageFolder, status: int, log: str) -> MachineError | TestError:
    """Return the error of a run without result: no script, a refusal, or a crash."""
    where = f"Whole log: {output.folder / _LOG}"
    if f"can't open file '{start.SCRIPT}'" in log:
        fix = "Build it again with this version: sifwright build."
        return MachineError.of(f"no {start.SCRIPT} in it", where=str(output.link), fix=fix)
    says = _RUN_SCRIPT_SAYS if status in _REFUSALS else _SAYS
    told = [line.split(says, 1)[1] for line in log.splitlines() if says in line]
    if told:
        return MachineError.of(f"the benchmark cannot run: {told[-1]}", fix=where)
    logs = nccl_log.parse_nccl_log(log).values()
    # A process that has chosen a network ended of something else.
    hints = [hint for evidence in logs if not evidence.networks for hint in evidence.hints]
    if hints:
        message = f"the benchmark failed with exit status {status}, and NCCL said: {hints[-1]}"
        fix = f"{comm_verdict.advice(site.network_expect)}\n    {where}"
        return TestError.of(message, fix=fix)
    warnings = [f"NCCL said: {warning}" for evidence in logs for warning in evidence.warnings]
    lines = [line for line in log.splitlines() if line.strip()]
    last = (warnings or lines or ["no output"])[-1]
    return TestError.of(f"the benchmark failed with exit status {status}: {last}", fix=where)


def _judged(
    site: Site, output: ImageFolder, measured: Mapping[str, Any], log: str
) -> tuple[dict[str, Any], Verdict]:
    """Return the results with the verdict among them, and the verdict."""
    if measured["backend"] == "nccl":
        ranks = [Process(rank["host"], rank["pid"]) for rank in measured["ranks"]]
        evidence = nccl_log.parse_nccl_log(log, ranks)
        verdict = comm_verdict.judge(site.network_expect, ranks, evidence)
    else:
        text = f"backend {measured['backend']} does not use the network of NCCL; nothing is proven"
        verdict = Verdict(state="not checked", text=text)
    judged = {"state": verdict.state, "text": verdict.text}
    return {"site": site.name, "image": output.name, **measured, "verdict": judged}, verdict


def _publish(output: ImageFolder, work_dir: Path, document: Mapping[str, Any]) -> tuple[Path, ...]:
    """Put results and, with matplotlib, the picture into the image's folder."""
    (work_dir / _JSON).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    paths = [work_dir / _JSON]
    if results.can_plot():
        title = (
            f"{document['image']} on {document['site']}: {document['world_size']} ranks,"
            f" {document['nodes']} node{'s' if document['nodes'] > 1 else ''},"
            f" {document['library']}, torch {document['torch']}"
        )
        paths += results.plot(document, title, work_dir)
    for path in paths:
        files.publish(path, output.folder / path.name)
    return tuple(output.folder / name for name in (*(path.name for path in paths), _LOG))
