"""A CUDA toolkit of NVIDIA's Python packages, laid out as NVIDIA's image of Ubuntu has it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CUDA", "ENVIRONMENT", "NCCL", "add_toolkit"]

CUDA, NCCL = "13.2.1", "2.29.7"
SERIES, TARGET = "13.2", "targets/x86_64-linux"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
NVIDIA_LIST = (
    "deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg]"
    " https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/ /\n"
)
ENVIRONMENT = {
    "PATH": "/usr/local/nvidia/bin:/usr/local/cuda/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LD_LIBRARY_PATH": "/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
    "LIBRARY_PATH": "/usr/local/cuda/lib64/stubs",
    "CUDA_VERSION": CUDA,
    "NVIDIA_REQUIRE_CUDA": f"cuda>={SERIES}",
}


def add_toolkit(tree: Path) -> None:
    """Install the packages into the tree of an image, and move each part to its place."""
    parts = _install(tree / "wheels")
    toolkit = tree / "usr/local" / f"cuda-{SERIES}"
    _lay_out(parts / "cu13", toolkit)
    _add_nccl(parts / "nccl", tree)
    shutil.rmtree(tree / "wheels")
    (tree / "etc/alternatives/cuda").symlink_to(f"/usr/local/cuda-{SERIES}")
    (tree / "usr/local/cuda").symlink_to("/etc/alternatives/cuda")
    _add_driver(toolkit)
    _write(tree / "etc/ld.so.conf.d/000_cuda.conf", f"/usr/local/cuda/{TARGET}/lib\n")
    _write(tree / "etc/ld.so.conf.d/00-cuda-compat.conf", "/usr/local/cuda/compat\n")
    _write(tree / "etc/apt/sources.list.d/cuda-ubuntu2404-x86_64.list", NVIDIA_LIST)
    _run(["/sbin/ldconfig", "-r", tree])


def _install(folder: Path) -> Path:
    packages = [f"cuda-toolkit[cccl,cuobjdump,nvcc]=={CUDA}", f"nvidia-nccl-cu13=={NCCL}"]
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target"]
    _run([*words, folder, *packages])
    return folder / "nvidia"


def _lay_out(folder: Path, toolkit: Path) -> None:
    """Put the packages into one folder; NVIDIA's has headers and libraries by processor."""
    target = toolkit / TARGET
    target.mkdir(parents=True)
    for name in ("include", "lib"):
        (folder / name).rename(target / name)
    for name in ("bin", "nvvm"):
        (folder / name).rename(toolkit / name)
    (toolkit / "include").symlink_to(f"{TARGET}/include")
    (toolkit / "lib64").symlink_to(f"{TARGET}/lib")
    (target / "lib/libcudart.so").symlink_to("libcudart.so.13")
    profile = toolkit / "bin/nvcc.profile"
    profile.write_text(profile.read_text().replace("$(TOP)/lib", "$(TOP)/lib64"))


def _add_nccl(folder: Path, tree: Path) -> None:
    shutil.copytree(folder / "include", tree / "usr/include", dirs_exist_ok=True)
    library = tree / LIBRARIES / f"libnccl.so.{NCCL}"
    (folder / "lib/libnccl.so.2").rename(library)
    library.with_name("libnccl.so.2").symlink_to(library.name)
    library.with_name("libnccl.so").symlink_to("libnccl.so.2")


def _add_driver(toolkit: Path) -> None:
    """Add the newer driver's library of package cuda-compat, and the stub to link with."""
    stubs = toolkit / TARGET / "lib/stubs"
    stubs.mkdir()
    (toolkit / "compat").mkdir()
    for library in (stubs / "libcuda.so", toolkit / "compat/libcuda.so.595.58"):
        _compile(library)
    (toolkit / "compat/libcuda.so.1").symlink_to("libcuda.so.595.58")
    (toolkit / "compat/libcuda.so").symlink_to("libcuda.so.1")


def _compile(library: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to make libraries with: apt-get install gcc")
    words = [compiler, "-shared", "-Wl,-soname,libcuda.so.1", "-x", "c", "-o", library, "-"]
    _run(words, "int cuInit(unsigned flags) { return 34; }\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _run(words: Sequence[object], text: str = "") -> None:
    done = run(words, input=text)
    assert done.returncode == 0, done.stdout + done.stderr
