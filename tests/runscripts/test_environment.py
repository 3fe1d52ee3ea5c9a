"""A rank's environment, from the image's site file, the node's GPUs and its disk."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

import pytest
from launch import debug, devices, launchers, threads

from .test_conda_python_distributed import SCRIPT, SRUN

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from .conftest import Runner

SHOW = "import json, os; print(json.dumps(dict(os.environ)))"
# Task 1 of 4 on one node.
ONE_NODE = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "2",
    "SLURM_PROCID": "1",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "0",
    "SLURM_STEP_TASKS_PER_NODE": "4",
    "SLURM_STEP_NODELIST": "nid001",
}
NODE = os.cpu_count() or 1
SITE = """# Site lumi
[always]
SIFWRIGHT_VENDOR=amd
NCCL_CROSS_NIC=1
[one-node]
NCCL_NET=Socket
[several-nodes]
NCCL_NET=AWS Libfabric = "x" $HOME
"""


def environment(runner: Runner, **env: str) -> dict[str, str]:
    result = runner.having(**env).run(SCRIPT, "-c", SHOW)
    assert (result.returncode, result.stderr) == (0, "")
    return dict(json.loads(result.stdout))


def refused(runner: Runner, **env: str) -> str:
    result: subprocess.CompletedProcess[str] = runner.having(**env).run(SCRIPT, "-c", SHOW)
    assert (result.returncode, result.stdout) == (78, "")
    (line,) = result.stderr.splitlines()
    return line


@pytest.fixture
def at_site(runner: Runner, tmp_path: Path) -> Runner:
    (tmp_path / "site-environment").write_text(SITE)
    file = str(tmp_path / "site-environment")
    return runner.having(SIFWRIGHT_SITE_ENVIRONMENT=file, TMPDIR=str(tmp_path))


def test_section_of_one_node(at_site: Runner) -> None:
    values = environment(at_site, **ONE_NODE)
    assert (values["NCCL_NET"], values["NCCL_CROSS_NIC"]) == ("Socket", "1")


def test_section_of_several_nodes_and_values_verbatim(at_site: Runner) -> None:
    assert environment(at_site, **SRUN)["NCCL_NET"] == 'AWS Libfabric = "x" $HOME'


def test_set_only_if_unset(at_site: Runner) -> None:
    values = environment(at_site, **SRUN, NCCL_NET="Socket", NCCL_CROSS_NIC="")
    assert (values["NCCL_NET"], values["NCCL_CROSS_NIC"]) == ("Socket", "")


@pytest.mark.parametrize("line", ["NCCL_NET", "[sometimes]", "=1", "[always", "A B=1"])
def test_unreadable_site_file(runner: Runner, tmp_path: Path, line: str) -> None:
    file = tmp_path / "site"
    file.write_text(f"[always]\n{line}\n")
    message = refused(runner, SIFWRIGHT_SITE_ENVIRONMENT=str(file))
    assert f"line '{line}' of the site environment file {file}" in message


def test_site_file_that_is_not_there(runner: Runner) -> None:
    message = refused(runner, SIFWRIGHT_SITE_ENVIRONMENT="/no/such/file")
    assert "SIFWRIGHT_SITE_ENVIRONMENT='/no/such/file' does not exist" in message


AMD, NVIDIA = {"SIFWRIGHT_VENDOR": "amd"}, {"SIFWRIGHT_VENDOR": "nvidia"}
HIP, ROCR, CUDA = "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"
OWN = {"SIFWRIGHT_GPU_VISIBILITY": "own"}


@pytest.mark.parametrize(
    ("env", "local_rank", "changed"),
    [
        pytest.param(NVIDIA | {CUDA: "0,1,2,3"}, "1", {}, id="all of the node's"),
        pytest.param(NVIDIA | {CUDA: "3"}, "0", {}, id="one per task"),
        pytest.param(NVIDIA | {CUDA: "GPU-1a,GPU-2b,GPU-3c,GPU-4d"}, "1", {}, id="by UUID"),
        pytest.param(NVIDIA | {CUDA: "MIG-a,MIG-b,MIG-c,MIG-d"}, "0", {CUDA: "MIG-b"}, id="MIG"),
        pytest.param(NVIDIA | {CUDA: "NoDevFiles"}, "1", {}, id="Slurm gave none"),
        pytest.param(NVIDIA | {CUDA: ""}, "1", {}, id="hidden on purpose"),
        pytest.param({"SIFWRIGHT_VENDOR": "cpu", CUDA: "0"}, "1", {}, id="no GPUs at this site"),
        pytest.param(AMD | {ROCR: "0,1,2,3"}, "1", {}, id="ROCm"),
        pytest.param(AMD | {ROCR: "2"}, "0", {}, id="ROCm, one per task"),
        pytest.param(AMD | {ROCR: "4,5,6,7", HIP: "0,1,2,3"}, "1", {}, id="HIP numbers ROCR's"),
        pytest.param(AMD | {HIP: "7"}, "0", {}, id="HIP, one per task"),
        pytest.param(NVIDIA | {CUDA: "0,1", "LOCAL_RANK": "0"}, "0", {}, id="a preset value wins"),
        pytest.param(NVIDIA | OWN | {CUDA: "4,5,6,7"}, "0", {CUDA: "5"}, id="own, CUDA"),
        pytest.param(AMD | OWN | {ROCR: "4,5,6,7"}, "0", {ROCR: "5"}, id="own, ROCm"),
        pytest.param(
            AMD | OWN | {ROCR: "4,5,6,7", HIP: "3,2,1,0"}, "0", {HIP: "2"}, id="own, innermost"
        ),
        pytest.param(AMD | OWN | {ROCR: "6"}, "0", {ROCR: "6"}, id="own is what there is"),
    ],
)
def test_local_rank_names_the_own_device(
    runner: Runner, tmp_path: Path, env: dict[str, str], local_rank: str, changed: dict[str, str]
) -> None:
    values = environment(runner, **ONE_NODE, **env, TMPDIR=str(tmp_path))
    assert (values["LOCAL_RANK"], values["LOCAL_WORLD_SIZE"]) == (local_rank, "4")
    for name in (HIP, ROCR, CUDA):
        assert values.get(name) == changed.get(name, env.get(name))


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (NVIDIA | {CUDA: "0,1"}, "but 2 visible GPUs (CUDA_VISIBLE_DEVICES='0,1')"),
        (NVIDIA | {CUDA: "0,1,-1,2,3"}, "but 2 visible GPUs"),
        (NVIDIA | {CUDA: "0", "SLURM_GPUS_ON_NODE": "1"}, "but 1 visible GPU (CUDA_VISIBLE"),
        (NVIDIA | {CUDA: "0,1", "LOCAL_RANK": "2"}, "LOCAL_RANK='2' is beyond the 2 visible GPUs"),
        (
            NVIDIA | {CUDA: "MIG-a,MIG-b", "LOCAL_RANK": "1"},
            "LOCAL_RANK='1' is beyond the first MIG",
        ),
        (AMD | {ROCR: "3", HIP: "3"}, "HIP_VISIBLE_DEVICES='3' asks for number 3"),
        (AMD | {ROCR: "0,1,2"}, "but 3 visible GPUs (ROCR_VISIBLE_DEVICES='0,1,2')"),
    ],
)
def test_too_few_devices(runner: Runner, env: dict[str, str], message: str) -> None:
    assert message in refused(runner, **ONE_NODE, **env)


def test_task_alone_on_its_node_keeps_all_devices(runner: Runner) -> None:
    values = environment(runner, **NVIDIA, **OWN, **{CUDA: "0,1,2,3"})
    assert (values["LOCAL_RANK"], values[CUDA]) == ("0", "0,1,2,3")


@pytest.mark.parametrize(
    ("devices", "reason", "advice"),
    [
        ("0,1", "2 visible GPUs", "ask for more GPUs"),
        (
            "MIG-a,MIG-b,MIG-c",
            "first MIG device, the only one that a process can use, of the 3 visible GPUs",
            "start a task per device (srun --ntasks-per-node), without --nproc-per-node",
        ),
    ],
)
def test_more_local_ranks_than_devices(
    runner: Runner, devices: str, reason: str, advice: str
) -> None:
    result = runner.having(**NVIDIA, **{CUDA: devices}).run(SCRIPT, "--nproc-per-node", "3", "t.py")
    assert result.returncode == 78
    message = f"--nproc-per-node '3' is more than the {reason} ({CUDA}='{devices}'): {advice}"
    assert result.stderr == f"conda-python-distributed: {message}\n"


def test_amd_devices_are_the_nodes_with_compute_units(tmp_path: Path) -> None:
    """Read a LUMI node's topology in short: CPUs first, and one GPU of another job."""
    for node, units in enumerate(["0", "0", "440", "440", "440"]):
        folder = tmp_path / str(node)
        folder.mkdir()
        (folder / "properties").write_text(f"cpu_cores_count 16\nsimd_count {units}\n")
    (tmp_path / "4" / "properties").unlink()
    assert devices.amd_nodes(str(tmp_path)) == 2
    assert devices.amd_nodes(str(tmp_path / "none")) == 0


def test_miopen_cache_is_per_job_and_kept(runner: Runner, tmp_path: Path) -> None:
    def cache(**env: str) -> str:
        values = environment(runner, **ONE_NODE | AMD | {"TMPDIR": str(tmp_path)} | env)
        assert values["MIOPEN_USER_DB_PATH"] == values["MIOPEN_CUSTOM_CACHE_DIR"]
        return values["MIOPEN_USER_DB_PATH"]

    folder = tmp_path / f"sifwright-miopen-{os.getuid()}-4711"
    assert cache() == str(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (folder / "compiled").touch()
    assert cache(SLURM_STEP_ID="3", SLURM_PROCID="0", SLURM_LOCALID="0") == str(folder)
    assert cache(SLURM_JOB_ID="4712") != str(folder)
    assert (folder / "compiled").exists()


def test_preset_miopen_cache_stays(runner: Runner, tmp_path: Path) -> None:
    env = ONE_NODE | AMD | {"TMPDIR": str(tmp_path), "MIOPEN_USER_DB_PATH": "/mine"}
    values = environment(runner, **env)
    assert values["MIOPEN_USER_DB_PATH"] == "/mine"
    assert values["MIOPEN_CUSTOM_CACHE_DIR"].startswith(str(tmp_path))  # the other is still unset
    both = environment(runner, **env, MIOPEN_CUSTOM_CACHE_DIR="/mine too")
    assert both["MIOPEN_CUSTOM_CACHE_DIR"] == "/mine too"


def test_miopen_cache_laid_by_somebody_else(runner: Runner, tmp_path: Path) -> None:
    link = tmp_path / f"sifwright-miopen-{os.getuid()}-4711"
    link.symlink_to("/etc")
    assert "belongs to another user" in refused(runner, **ONE_NODE, **AMD, TMPDIR=str(tmp_path))


def test_no_gpus_no_miopen_cache(runner: Runner, tmp_path: Path) -> None:
    values = environment(runner, **ONE_NODE, SIFWRIGHT_VENDOR="cpu", TMPDIR=str(tmp_path))
    assert not [name for name in values if name.startswith("MIOPEN")]
    assert not list(tmp_path.glob("*miopen*"))


@pytest.mark.parametrize("name", ["NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"])
def test_interface_that_does_not_exist(runner: Runner, name: str) -> None:
    message = refused(runner, **SRUN, **{name: "hsn"})
    assert f"{name}='hsn' names no network interface of " in message
    assert " lo" in message


@pytest.mark.parametrize("value", ["lo", "=lo", "^eth", "hsn,lo", "l"])
def test_interface_that_exists(runner: Runner, value: str) -> None:
    assert environment(runner, **SRUN, NCCL_SOCKET_IFNAME=value)["NCCL_SOCKET_IFNAME"] == value


def test_loopback_is_no_master_for_several_nodes(runner: Runner) -> None:
    message = refused(runner, **SRUN, MASTER_ADDR="127.0.0.1")
    assert "MASTER_ADDR='127.0.0.1' is every node's own address" in message


def test_debug_line_shows_what_matters(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "librccl-net.so").touch()
    env = ONE_NODE | AMD | {ROCR: "4,5,6,7", "LD_LIBRARY_PATH": str(tmp_path)}
    result = runner.having(**env, TMPDIR=str(tmp_path), SIFWRIGHT_DEBUG="1").run(SCRIPT, "-c", "")
    (line,) = result.stderr.splitlines()
    for text in (
        f"host={os.uname().nodename} pid=",
        "launcher=slurm RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 GROUP_RANK=0",
        "MASTER_ADDR=nid001 MASTER_PORT=",
        "devices=4,5,6,7",
        f"cpus={debug.ranges(os.sched_getaffinity(0))}",
        f"plugins={tmp_path}/librccl-net.so",
    ):
        assert text in line


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([0, 1, 2, 5, 7, 8], "0-2,5,7-8")]
)
def test_ranges(numbers: list[int], text: str) -> None:
    assert debug.ranges(numbers) == text


@pytest.mark.parametrize(("tasks", "expected"), [(1, NODE), (NODE + 1, max(NODE // (NODE + 1), 1))])
def test_unbound_tasks_share_the_cpus(runner: Runner, tasks: int, expected: int) -> None:
    env = {"PMI_RANK": "0", "PMI_SIZE": str(tasks), "MPI_LOCALRANKID": "0"}
    more = {"MPI_LOCALNRANKS": str(tasks), "MASTER_PORT": "29999"}
    assert environment(runner, **env, **more)["OMP_NUM_THREADS"] == str(expected)


def test_bound_tasks_have_their_cpus_for_themselves() -> None:
    """Give each task a quarter of the node, as mpiexec --cpu-bind numa does on Derecho."""
    mine = len(os.sched_getaffinity(0))
    env = {"SLURM_CPUS_ON_NODE": str(4 * mine)}  # stands for the node's CPUs
    for launcher in (launchers.PALS, launchers.FLUX, launchers.OPEN_MPI):
        assert threads.threads(env, launcher, 1, 4) == str(mine)
        assert threads.threads(env, launcher, 1, 8) == str(max(mine // 8, 1))
