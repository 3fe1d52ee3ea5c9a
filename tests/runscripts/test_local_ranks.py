"""conda-python-distributed --nproc-per-node: what torchrun is called with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from .test_conda_python_distributed import CPUS, SCRIPT, SRUN

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Runner


RUN = """import json, os, sys
def main():
    print(json.dumps([sys.argv[1:], os.environ['OMP_NUM_THREADS']]))
"""


def write_torchrun(site: Path, run: str) -> None:
    """Write a torch.distributed.run, and what its agent imports; the real one is in the image."""
    elastic = site / "torch" / "distributed" / "elastic" / "multiprocessing"
    (elastic / "errors").mkdir(parents=True)
    (elastic.parents[1] / "run.py").write_text(run)
    (elastic / "__init__.py").write_text("class SignalException(Exception): pass")
    (elastic / "api.py").touch()
    (elastic / "errors" / "__init__.py").write_text("class ChildFailedError(Exception): pass")


@pytest.fixture
def torchrun(tmp_path: Path, runner: Runner) -> Runner:
    """Run with a torch.distributed.run that prints its arguments."""
    write_torchrun(tmp_path / "site", RUN)
    return runner.having(PYTHONPATH=str(tmp_path / "site"))


def torchrun_arguments(runner: Runner, *arguments: str, **env: str) -> list[str]:
    result = runner.having(OMP_NUM_THREADS="2", **env).run(SCRIPT, *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    document, _threads = json.loads(result.stdout)
    return list(document)


ONE_PER_NODE = SRUN | {
    "SLURM_PROCID": "1",
    "SLURM_NTASKS": "3",
    "SLURM_STEP_NUM_TASKS": "3",
    "SLURM_STEP_TASKS_PER_NODE": "1(x3)",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "1",
}


def c10d(nodes: int, endpoint: str, name: str, *, host: int) -> list[str]:
    return [
        *("--nnodes", str(nodes), "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint),
        *("--rdzv-id", name, "--rdzv-conf", f"is_host={host}"),
    ]


@pytest.mark.parametrize("option", [["--nproc-per-node", "2"], ["--nproc_per_node=2"]])
def test_local_ranks_on_one_machine(torchrun: Runner, option: list[str]) -> None:
    result = torchrun_arguments(torchrun, *option, "train.py", "a b")
    standalone = ["--standalone", "--local-addr", "127.0.0.1"]
    assert result == ["--nproc-per-node", "2", *standalone, "train.py", "a b"]


def test_local_ranks_of_a_command(torchrun: Runner) -> None:
    result = torchrun_arguments(torchrun, "--nproc-per-node", "2", "-c", "print(1)", "a b")
    assert result[-6:-5] == ["--no-python"]
    assert result[-4:] == ["-u", "-c", "print(1)", "a b"]


def test_local_ranks_at_a_preset_port(torchrun: Runner) -> None:
    result = torchrun_arguments(torchrun, "--nproc-per-node", "2", "t.py", MASTER_PORT="29876")
    assert result[2:] == [*c10d(1, "127.0.0.1:29876", "sifwright", host=1), "t.py"]


def test_local_ranks_on_several_nodes(torchrun: Runner) -> None:
    result = torchrun_arguments(torchrun, "--nproc-per-node", "8", "t.py", **ONE_PER_NODE)
    assert result[2:] == [*c10d(3, "rack0node1:12345", "4711-2-0", host=0), "t.py"]


def test_local_ranks_share_the_cpus(torchrun: Runner) -> None:
    result = torchrun.run(SCRIPT, "--nproc-per-node", str(CPUS), "t.py")
    assert json.loads(result.stdout)[1] == "1"


@pytest.mark.parametrize(
    ("option", "env", "message"),
    [
        ("0", {}, "--nproc-per-node '0' is not a positive number"),
        ("auto", {}, "--nproc-per-node 'auto' is not a positive number"),
        ("", {}, "--nproc-per-node '' is not a positive number"),
        ("2", {"RANK": "0"}, "RANK='0' is preset"),
        ("2", {"LOCAL_RANK": "0"}, "LOCAL_RANK='0' is preset"),
        ("2", SRUN, "--nproc-per-node needs one task per node, but there are 3 on this one"),
    ],
)
def test_local_ranks_refused(
    torchrun: Runner, option: str, env: dict[str, str], message: str
) -> None:
    result = torchrun.having(**env).run(SCRIPT, "--nproc-per-node", option, "t.py")
    assert message in result.stderr
    assert (result.returncode, result.stdout) == (78, "")
