"""NVIDIA's GPUs: what a list names, by what its driver did with such lists on an H200."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from launch import devices, nvidia
from launch.errors import LaunchError
from launch.ranks import Ranks

if TYPE_CHECKING:
    from pathlib import Path

NVIDIA = {"SIFWRIGHT_VENDOR": "nvidia"}
FIRST = "GPU-ef6c65f7-659d-3b71-fb21-1a8c114586fa"
SECOND = "GPU-4d8d6f49-74d4-eb80-5c62-d3ba82513bdb"


def make_node(folder: Path, *uuids: str) -> tuple[str, str]:
    """Lay out a node's device files and what the driver tells of its GPUs."""
    for number, uuid in enumerate(uuids):
        for file in (folder / f"dev/nvidia{number}", folder / f"gpus/0000:0{number}/information"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"Model: \t\t NVIDIA H200\nGPU UUID: \t {uuid}\nDevice Minor: \t 0\n")
    (folder / "dev/nvidiactl").touch()
    return str(folder / "dev"), str(folder / "gpus")


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a node with two GPUs."""
    dev, gpus = make_node(tmp_path, FIRST, SECOND)
    count, known = nvidia.files(dev), nvidia.uuids(gpus)
    monkeypatch.setattr(nvidia, "files", lambda: count)
    monkeypatch.setattr(nvidia, "uuids", lambda: known)


def list_names(value: str) -> list[str]:
    result = devices.visible(NVIDIA | {nvidia.VARIABLE: value})
    assert result is not None
    return result.names


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("0", ["0"]),
        ("1,0", ["1", "0"]),
        ("00", ["00"]),
        ("0,7,1", ["0"]),
        ("0,-1", ["0"]),
        ("0,,0", ["0"]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        (FIRST, [FIRST]),
        ("GPU-ef6c", ["GPU-ef6c"]),
        (f"{SECOND},GPU-00000000", [SECOND]),
        ("MIG-9c6e1c0e-1,MIG-9c6e1c0e-2", ["MIG-9c6e1c0e-1", "MIG-9c6e1c0e-2"]),
    ],
)
@pytest.mark.usefixtures("node")
def test_a_list_ends_at_the_first_that_is_no_gpu(value: str, names: list[str]) -> None:
    assert list_names(value) == names


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("7", "names no GPU of this node, which has 2"),
        ("7,0", "names no GPU of this node"),
        ("all", "names no GPU of this node"),
        ("GPU-00000000-1111-2222-3333-444444444444", "names no GPU of this node"),
        (FIRST.removeprefix("GPU-"), "names no GPU of this node"),
        (FIRST.upper(), "names no GPU of this node"),
        ("0,0", "names a GPU twice"),
        (f"GPU-ef6c,{FIRST}", "names a GPU twice"),
    ],
)
@pytest.mark.usefixtures("node")
def test_a_list_that_gives_no_gpu_is_refused(value: str, reason: str) -> None:
    """Refuse the list: CUDA sees no device then, and torch trained on CPUs with exit status 0."""
    with pytest.raises(LaunchError, match=f"CUDA_VISIBLE_DEVICES='{value}' {reason}"):
        list_names(value)


def test_uuids_that_the_driver_does_not_tell(tmp_path: Path) -> None:
    _, gpus = make_node(tmp_path, FIRST, "GPU-????????-????-????-????-????????????")
    assert nvidia.uuids(gpus) == []
    assert nvidia.uuids(str(tmp_path / "none")) == []


@pytest.mark.parametrize("more", [{}, {nvidia.VARIABLE: "0,7"}])
def test_ranks_do_not_share_the_only_gpu_of_a_node(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, str]
) -> None:
    """Refuse it: NCCL ends with a traceback then, "Duplicate GPU detected"."""
    monkeypatch.setattr(nvidia, "files", lambda: 1)
    numbers = {"RANK": 1, "WORLD_SIZE": 2, "LOCAL_RANK": 1, "LOCAL_WORLD_SIZE": 2}
    with pytest.raises(LaunchError, match="LOCAL_WORLD_SIZE='2' ranks on this node, but 1 visible"):
        devices.choose(NVIDIA | more, Ranks(None, numbers), preset=False)


@pytest.mark.usefixtures("node")
def test_a_container_without_the_driver_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Name --nv: without it, /dev has the GPUs' files, and training used the CPUs."""
    monkeypatch.setattr(nvidia, "has_driver", lambda _: False)
    devices.warn_without_driver(NVIDIA | {nvidia.VARIABLE: ""})
    devices.warn_without_driver({"SIFWRIGHT_VENDOR": "cpu"})
    assert capsys.readouterr().err == ""
    devices.warn_without_driver(NVIDIA)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("torch will use the CPUs; start the container with --nv")


def test_the_driver_is_found_as_the_loader_finds_it(tmp_path: Path) -> None:
    assert nvidia.has_driver({}, "libc.so.6")
    assert not nvidia.has_driver({"LD_LIBRARY_PATH": f":{tmp_path}"}, "libnone.so.1")
    (tmp_path / "libnone.so.1").touch()
    assert nvidia.has_driver({"LD_LIBRARY_PATH": f"/none:{tmp_path}"}, "libnone.so.1")
