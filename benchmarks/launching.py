"""Starting Python by the run scripts, on one machine: what they cost, and what they save."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from built import SITE, Container, container, gzip_container, quiet
from figures import Figure, Result, ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from figures import Settings

__all__ = ["eight_ranks", "engine_lines", "wrapper"]

OVERHEAD_MS = 30.0
RANKS, RANKS_RATIO = 8, 0.7
BARE = "python"
WRAPPERS = ("conda-python-simple", "conda-python-distributed")
# What srun sets for two tasks on one node (tests/runscripts/environments).
STEP = {
    "SLURM_JOB_ID": "1",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "localhost",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_STEP_TASKS_PER_NODE": "2",
    "SLURM_NTASKS": "2",
    "SLURM_NNODES": "1",
    "SLURM_NODEID": "0",
}
TASKS = [STEP | {"SLURM_PROCID": number, "SLURM_LOCALID": number} for number in "01"]
PROBES = Path(__file__).parent


# --- conda-python-… -c pass against python -c pass ------------------------------------------------


def wrapper(settings: Settings) -> Result:
    """Time the wrappers against the Python that they become, in one container."""
    box, rounds = container(settings), settings.runs(61)
    alone = _in_turn(box, rounds, (BARE, *WRAPPERS), [{}])
    two = _in_turn(box, rounds, (BARE, WRAPPERS[1]), TASKS)
    text = "-c pass, more than bare python in the same container"
    figures = [_more(name, text, alone, name, OVERHEAD_MS) for name in WRAPPERS]
    name = "…-distributed, two ranks of srun"
    figures.append(_more(name, "the same as two ranks that meet", two, WRAPPERS[1], None))
    return Result(figures=figures)


def _in_turn(
    box: Container, rounds: int, programs: Sequence[str], ranks: Sequence[Mapping[str, str]]
) -> dict[str, list[float]]:
    """Return the milliseconds of each program, without the first time."""
    commands = {name: [name, "-c", "pass"] for name in programs}
    task = json.dumps({"rounds": rounds + 1, "commands": commands, "ranks": ranks})
    command = box.exec(BARE, PROBES / "probe_wrapper.py", task)
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, env=quiet({}), cwd=PROBES.parent
    )
    walls = json.loads(done.stdout)
    return {name: [wall * 1e3 for wall in row[1:]] for name, row in walls.items()}


def _more(
    name: str, text: str, walls: Mapping[str, Sequence[float]], program: str, goal: float | None
) -> Figure:
    rows = zip(walls[program], walls[BARE], strict=True)
    return Figure(
        name=name,
        what=text,
        unit="ms",
        samples=tuple(ours - bare for ours, bare in rows),
        goal=goal,
        sides={BARE: walls[BARE], "with the wrapper": walls[program]},
    )


# --- eight ranks on one machine -------------------------------------------------------------------


def eight_ranks(settings: Settings) -> Result:
    """Start eight ranks in one container of our SIF, and in eight of one with gzip."""
    ours, others = container(settings), gzip_container(settings)
    single, eight = "one container, zstd", "one per rank, gzip"
    walls: dict[str, list[float]] = {single: [], eight: []}
    for _ in range(1 + settings.runs(5)):
        walls[single].append(_wall([_agent(ours)], [{}]))
        walls[eight].append(_wall([_rank(others)] * RANKS, _numbered()))
    warm = {side: row[1:] for side, row in walls.items()}
    text = f"{RANKS} ranks from start to end with one all-reduce, s (P5)"
    return Result(figures=[ratio("8 ranks / 8 gzip containers", text, warm, RANKS_RATIO)])


def _agent(box: Container) -> list[str]:
    script = PROBES / "probe_all_reduce.py"
    return box.exec("conda-python-distributed", "--nproc-per-node", RANKS, script)


def _rank(box: Container) -> list[str]:
    return box.exec(BARE, PROBES / "probe_all_reduce.py")


def _numbered() -> list[dict[str, str]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(RANKS)}
    return [common | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(RANKS)]


def _wall(commands: Sequence[list[str]], environments: Sequence[Mapping[str, str]]) -> float:
    """Return the seconds from the first start to the last end; all must succeed."""
    start = time.perf_counter()
    running = [
        subprocess.Popen(
            command,
            env=quiet({"OMP_NUM_THREADS": "1", **env}),
            cwd=PROBES.parent,
            stdout=subprocess.DEVNULL,
        )
        for command, env in zip(commands, environments, strict=True)
    ]
    failed = [process.args for process in running if process.wait()]
    wall = time.perf_counter() - start
    assert not failed, failed
    return wall


# --- what the engine says -------------------------------------------------------------------------


def engine_lines(settings: Settings) -> Result:
    """Count the engine's messages in a job of ours, and in one with a bind of the user's only."""
    box, runs = container(settings), range(3)
    with tempfile.TemporaryDirectory() as folder:
        job = _job(settings, box, Path(folder))
        both = {"APPTAINER_BIND": folder, "SINGULARITY_BIND": folder}
        ours = [_messages(["bash", str(job)], both) for _ in runs]
        plain = [_messages(box.exec("true"), {"SINGULARITY_BIND": folder}) for _ in runs]
    figure = Figure(
        name="messages of the engine in a job",
        what="lines INFO and WARNING, job script of site local with binds",
        unit="lines",
        samples=tuple(map(float, ours)),
        goal=0,
        sides={"job script": ours, "plain exec, SINGULARITY_BIND": plain},
    )
    return Result(figures=[figure])


def _job(settings: Settings, box: Container, folder: Path) -> Path:
    job = folder / "job.sh"
    command = [sys.executable, "-m", "sifwright", "jobscript", "--site", SITE, "--nodes", "1"]
    options = ["--sif", str(box.sif), "--output", str(job)]
    script = ["--", "-c", "pass"]
    subprocess.run(
        [*command, *options, *script], check=True, cwd=settings.project, stdout=subprocess.DEVNULL
    )
    return job


def _messages(command: Sequence[str], env: Mapping[str, str]) -> int:
    done = subprocess.run(
        command, check=True, stderr=subprocess.PIPE, env=quiet(env), encoding="utf-8"
    )
    return len(re.findall(r"^\W*(?:INFO|WARNING)\b", done.stderr, re.MULTILINE))
