"""The run scripts on a GPU of this machine, with the torch of an environment or of an image.

WITH_CONDA='source /opt/venv/bin/activate' names the environment; SIFWRIGHT_GPU_IMAGE names an image
instead. NCCL refuses two ranks on one GPU, unless their variables name two hosts.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from sifwright.launch.comm import nccl_log
from tests.conftest import ENGINE, ROOT, run
from tests.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TRAIN = (ROOT / "examples" / "train_digits.py", "--epochs", "1")
UNKNOWN = "GPU-00000000-1111-2222-3333-444444444444"


@pytest.fixture(scope="module")
def gpu() -> tuple[str, str]:
    """Name and UUID of the first GPU, as the driver's own program prints them."""
    program = shutil.which("nvidia-smi")
    if program is None:
        pytest.skip("no GPU")
    done = run([program, "--query-gpu=name,uuid", "--format=csv,noheader"])
    if done.returncode:
        pytest.skip("no GPU")
    name, uuid = done.stdout.splitlines()[0].split(", ")
    return name, uuid


@pytest.fixture(scope="module")
def start(gpu: tuple[str, str]) -> list[object]:
    """Return the words before a run script."""
    assert gpu
    if image := os.environ.get("SIFWRIGHT_GPU_IMAGE"):
        return [ENGINE, "exec", "--nv", "--bind", ROOT, image, "conda-python-distributed"]
    if "WITH_CONDA" not in os.environ:
        pytest.skip("no torch for GPUs: set WITH_CONDA or SIFWRIGHT_GPU_IMAGE")
    return [ROOT / "runscripts" / "conda-python-distributed"]


def environment(**variables: str) -> dict[str, str]:
    names = ("CUDA_VISIBLE_DEVICES", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    outer = {name: text for name, text in os.environ.items() if name not in names}
    return outer | variables


def test_training_is_on_the_gpu(gpu: tuple[str, str], start: list[object]) -> None:
    name, uuid = gpu
    for value in ("0", uuid[:12]):
        done = run([*start, *TRAIN], env=environment(CUDA_VISIBLE_DEVICES=value))
        assert done.returncode == 0, done.stderr
        assert f"on 1 ranks ({name}) in " in done.stdout


def test_training_is_on_the_cpu_if_asked(start: list[object]) -> None:
    done = run([*start, *TRAIN], env=environment(CUDA_VISIBLE_DEVICES=""))
    assert done.returncode == 0, done.stderr
    assert "on 1 ranks (CPU) in " in done.stdout


@pytest.mark.parametrize("value", ["4096", UNKNOWN, "0,0"])
def test_a_list_that_gives_no_gpu_is_refused(start: list[object], value: str) -> None:
    done = run([*start, *TRAIN], env=environment(CUDA_VISIBLE_DEVICES=value))
    assert done.returncode == 78
    assert f"CUDA_VISIBLE_DEVICES='{value}' names " in done.stderr


def two_hosts(start: list[object], *command: object) -> Iterator[tuple[int, str]]:
    """Start a command as two ranks of two hosts, which share the first GPU."""
    meet = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    alone = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "CUDA_VISIBLE_DEVICES": "0"}
    ranks = [
        subprocess.Popen(
            [str(word) for word in (*start, *command)],
            env=environment(**meet, **alone, RANK=str(rank), NCCL_HOSTID=f"host{rank}"),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for rank in (0, 1)
    ]
    for rank in ranks:
        _, error = rank.communicate(timeout=240)
        yield rank.returncode, error


def test_nccl_and_its_log(start: list[object], tmp_path: Path) -> None:
    """Compute right values, and find the network in each rank's log, in the words of this NCCL."""
    words = ("--backend", "nccl", "--max-size", "4K", "--seconds", "0.01", "--nccl-log", tmp_path)
    script = ROOT / "runscripts" / "collectives.py"
    for status, error in two_hosts(start, script, *words, "--json", tmp_path / "comm.json"):
        assert status == 0, error
    document = json.loads((tmp_path / "comm.json").read_text())
    assert len(document["rows"]) == 12
    assert {row["wrong_elements"] for row in document["rows"]} == {0}
    log = "".join(path.read_text() for path in tmp_path.glob("nccl.*.log"))
    assert f"NCCL version {document['library'].removeprefix('NCCL ')}" in log
    ranks = [nccl_log.Process(rank["host"], rank["pid"]) for rank in document["ranks"]]
    evidence = nccl_log.parse_nccl_log(log, ranks)
    assert all(evidence[rank].networks for rank in ranks), log
