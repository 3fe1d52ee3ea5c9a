"""R13: every launcher's environment, recorded from it or following its sources."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.waiting import START_TIMEOUT

from .test_conda_python_distributed import SCRIPT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import Runner

FOLDER = Path(__file__).parent / "environments"
NAMES = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR"]
SHOW = f"import json, os; print(json.dumps({{n: os.getenv(n, '-') for n in {NAMES}}}))"
# Not the launchers' business, or of the machine where they were recorded.
LEFT_OUT = ("PATH", "TMPDIR", "HOME", "PWD", "SHLVL", "_", "OMP_NUM_THREADS", "WITH_CONDA")
PRESET = {"MASTER_ADDR": "preset", "MASTER_PORT": "29999"}


def recorded(name: str) -> dict[str, str]:
    lines = (FOLDER / f"{name}.env").read_text().splitlines()
    pairs = (line.partition("=") for line in lines if line and line[0] != "#")
    nodefile = str(FOLDER / f"{name}.nodefile")
    return {
        key: value.replace("@nodefile@", nodefile)
        for key, _, value in pairs
        if key not in LEFT_OUT and not key.endswith("_VISIBLE_DEVICES")
    }


def expectation(name: str) -> dict[str, str]:
    last = (FOLDER / f"{name}.env").read_text().splitlines()[-1]
    words = last.removeprefix("# expect: ").split() if last.startswith("# expect: ") else []
    return dict(word.split("=", 1) for word in words)


def derived(runner: Runner, **env: str) -> dict[str, str]:
    result = runner.having(**env).run(SCRIPT, "-c", SHOW)
    assert (result.returncode, result.stderr) == (0, "")
    return dict(json.loads(result.stdout))


EXPECTED = [path.stem for path in sorted(FOLDER.glob("*.env")) if expectation(path.stem)]


@pytest.mark.parametrize(
    "name", [name for name in EXPECTED if expectation(name)["WORLD_SIZE"] != "-"]
)
def test_environment(runner: Runner, name: str) -> None:
    """Guess nothing that is unknown: with a master given, the ranks are as expected."""
    wanted = expectation(name)
    more = PRESET if wanted["MASTER_ADDR"] == "-" else {"MASTER_PORT": "29999"}
    values = derived(runner, **recorded(name) | more)
    if wanted["MASTER_ADDR"] == "-":
        wanted |= {"MASTER_ADDR": "preset"}
    assert values == wanted


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in EXPECTED
        if expectation(name)["MASTER_ADDR"] == "-" and expectation(name)["WORLD_SIZE"] != "-"
    ],
)
def test_master_that_nothing_names_is_refused_at_once(runner: Runner, name: str) -> None:
    """Fail the test if a rank waits for the others."""
    env = {"MASTER_PORT": "29999", "SIFWRIGHT_ROLL_CALL": "1"}
    env["SIFWRIGHT_START_TIMEOUT"] = START_TIMEOUT
    result = runner.having(**recorded(name) | env).run(SCRIPT, "-c", SHOW)
    assert (result.returncode, result.stdout) == (78, "")
    assert "no node list says where rank 0 is: set MASTER_ADDR" in result.stderr


def test_size_that_nothing_says_is_refused(runner: Runner) -> None:
    result = runner.having(**recorded("pals-uneven")).run(SCRIPT, "-c", SHOW)
    assert (result.returncode, result.stdout) == (78, "")
    assert "PALS_RANKID='2' is set without PMI_SIZE" in result.stderr


def launches() -> Iterator[tuple[str, list[str]]]:
    """Group the files NAME.0.env, NAME.1.env, … that were recorded from all tasks of a launch."""
    names = sorted(path.stem for path in FOLDER.glob("*.*.env"))
    for name, group in itertools.groupby(names, lambda stem: stem.rpartition(".")[0]):
        yield name, sorted(group, key=lambda stem: int(stem.rpartition(".")[2]))


# Variables that name a task's node; under mpirun, Slurm only knows where its daemons are. A batch
# script and a shell of salloc are one process each, for a job of any size.
NODE = ("MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "PMIX_HOSTNAME", "SLURMD_NODENAME")
SINGLE = ("batch", "salloc")
LAUNCHES = dict(launches())


@pytest.mark.parametrize("name", [name for name in LAUNCHES if name not in SINGLE])
def test_all_tasks_of_a_launch(runner: Runner, name: str) -> None:
    tasks = LAUNCHES[name]
    given = {} if name.endswith("slurm") or not name.startswith(("hydra-h", "ompi-h")) else PRESET
    results = [
        derived(runner, **recorded(task) | {"MASTER_PORT": "29999"} | given) for task in tasks
    ]
    assert sorted(int(task["RANK"]) for task in results) == list(range(len(tasks)))
    assert {task["WORLD_SIZE"] for task in results} == {str(len(tasks))}
    assert len({task["MASTER_ADDR"] for task in results}) == 1
    check_nodes(tasks, results)


def check_nodes(tasks: list[str], expected: list[dict[str, str]]) -> None:
    """Check each node: the local ranks are 0, 1, … and the local size is their number."""
    nodes: dict[str, list[dict[str, str]]] = {}
    for task, values in zip(tasks, expected, strict=True):
        env = recorded(task)
        nodes.setdefault(next((env[name] for name in NODE if name in env), ""), []).append(values)
    for node, here in nodes.items():
        assert {rank["LOCAL_WORLD_SIZE"] for rank in here} == {str(len(here))}, node
        assert sorted(int(rank["LOCAL_RANK"]) for rank in here) == list(range(len(here))), node
        assert len({rank["GROUP_RANK"] for rank in here}) == 1, node


@pytest.mark.parametrize("task", [task for name in SINGLE for task in LAUNCHES[name]])
def test_single_processes(runner: Runner, task: str) -> None:
    result = runner.having(**recorded(task)).run(SCRIPT, "-c", SHOW)
    document = json.loads(result.stdout)
    assert (document["RANK"], document["WORLD_SIZE"]) == ("0", "1")
