"""CUDA and HIP for the network layers: from a toolkit, or from PyTorch's wheels."""

from __future__ import annotations

import os
import re
import sys
import venv
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, run
from tests.unit.wheels import make_wheel

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

PROGRAM = ROOT / "defs" / "layers" / "libfabric" / "files" / "gpu-prefix"
# Release -> the runtime's folder and its libraries, and the packages with the headers it lacks.
WHEELS = {
    "12.6": (
        "cuda_runtime",
        ["libcudart.so.12"],
        ["nvidia_cuda_nvcc_cu12", "nvidia_nvml_dev_cu12"],
    ),
    "13.0": (
        "cu13",
        ["libcudart.so.13", "libcudart_static.a"],
        ["nvidia_cuda_crt", "nvidia_nvml_dev"],
    ),
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a virtual environment, as layer python-venv makes it."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    return folder


def find(gpu: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    nowhere = str(folder / "nowhere")
    settings = {"PATH": os.environ["PATH"], "CUDA_HOME": nowhere, "ROCM_PATH": nowhere}
    return run([PROGRAM, gpu, folder / "prefix"], env=settings | variables)


@pytest.mark.parametrize(
    ("gpu", "variable", "header"),
    [
        ("nvidia", "CUDA_HOME", "include/cuda_runtime.h"),
        ("amd", "ROCM_PATH", "include/hip/hip_runtime_api.h"),
    ],
)
def test_a_toolkit_comes_first(tmp_path: Path, gpu: str, variable: str, header: str) -> None:
    toolkit = tmp_path / "toolkit"
    (toolkit / header).parent.mkdir(parents=True)
    (toolkit / header).touch()
    done = find(gpu, tmp_path, **{variable: str(toolkit)})
    assert (done.returncode, done.stdout) == (0, f"{toolkit}\n")
    assert not (tmp_path / "prefix").exists()


@pytest.mark.parametrize("release", WHEELS)
def test_the_wheels_of_torch_make_a_prefix(environment: Path, tmp_path: Path, release: str) -> None:
    name, libraries, packages = WHEELS[release]
    for package in packages:
        _wheel(tmp_path / "wheels", package, f"{release}.85")
    site = next((environment / "lib").glob("python*")) / "site-packages"
    runtime = site / "nvidia" / name
    _runtime(runtime, release, libraries)
    variables = {
        "PATH": f"{environment}/bin:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path / "wheels"),
    }
    done = find("nvidia", tmp_path, **variables)
    (runtime / "include" / "cuda_runtime.h").unlink()
    prefix = tmp_path / "prefix"
    assert (done.returncode, done.stdout) == (0, f"{prefix}\n"), done.stderr
    assert (prefix / "include" / "cuda.h").read_text().startswith("#define CUDA_VERSION")
    for package in packages:
        assert (prefix / "include" / f"{package}.h").exists()
    library = (prefix / "lib64" / "libcudart.so").resolve()
    assert library == runtime / "lib" / libraries[0]
    assert (prefix / "lib64" / "libcudart_static.a").exists() is (len(libraries) > 1)


@pytest.mark.parametrize(
    ("gpu", "message"),
    [
        ("nvidia", "no CUDA: neither .*nowhere nor a torch wheel"),
        ("amd", "no HIP headers below .*nowhere"),
        ("intel", "'intel' is no GPU vendor"),
    ],
)
def test_the_missing_part_is_named(tmp_path: Path, gpu: str, message: str) -> None:
    done = find(gpu, tmp_path, PATH=f"{_python_without_cuda(tmp_path)}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.search(f"gpu-prefix: {message}", done.stderr), done.stderr


def _python_without_cuda(folder: Path) -> Path:
    """Return the tests' own Python, which has no torch for CUDA."""
    path = folder / "bin"
    path.mkdir()
    (path / "python3").symlink_to(sys.executable)
    return path


def _runtime(folder: Path, release: str, libraries: list[str]) -> None:
    major, minor = release.split(".")
    (folder / "include").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "include" / "cuda_runtime.h").touch()
    (folder / "include" / "cuda.h").write_text(f"#define CUDA_VERSION {major}0{minor}0\n")
    for library in libraries:
        (folder / "lib" / library).touch()


def _wheel(folder: Path, name: str, version: str) -> None:
    """Make a wheel with one header, named as the package."""
    folder.mkdir(exist_ok=True)
    header = {f"nvidia/{name}/include/{name}.h": ""}
    data = make_wheel(name, version, more=header)
    (folder / f"{name}-{version}-py3-none-any.whl").write_bytes(data)
