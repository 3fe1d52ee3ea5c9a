"""Layers whose kernels are compiled without a GPU, by the compiler of NVIDIA's wheels on Debian.

The layers are the real ones. FlashAttention's source has one family of kernels only.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from sifwright.host.network import pip_settings
from tests.checkouts import copy_project, write_image
from tests.conftest import run, sifwright
from tests.system.apptainer.narrow_flash_attention import narrow
from tests.system.apptainer.toys import succeeded

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 9000
pytestmark = [pytest.mark.slow, pytest.mark.build, pytest.mark.timeout(SECONDS + 400)]

LAYERS = ("base-debian", "python-venv", "build-tools", "pytorch-wheel", "cuda-wheels")
# cuobjdump lists each object of a library that holds code for a GPU.
LIST = """
import json, pathlib, re, subprocess, sysconfig
objects = {}
for library in pathlib.Path(sysconfig.get_path("purelib")).rglob("*.so"):
    if re.search("flash_attn|deepspeed", str(library)):
        words = ["cuobjdump", "--list-elf", library]
        listed = subprocess.run(words, capture_output=True, text=True).stdout
        objects[library.name.split(".")[0]] = re.findall(r"\\.(\\w+)\\.cubin", listed)
print(json.dumps(objects))
"""
FLASH_ATTENTION = {"flash_attn_2_cuda": 6}
# Objects of each library: the operators for CPUs have none.
DEEPSPEED = {
    "dc_op": 0,
    "fused_adam_op": 1,
    "fused_lamb_op": 1,
    "fused_lion_op": 1,
    "kernelsinference_core_ops": 5,
    "pin_memory_op": 0,
    "quantizer_op": 5,
    "ragged_ops": 1,
    "random_ltd_op": 3,
    "spatial_inference_op": 1,
    "stochastic_transformer_op": 7,
    "transformer_inference_op": 9,
    "transformer_op": 7,
    "utils_op": 0,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy_project(tmp_path / "project")


@pytest.fixture
def narrowed(project: Path, python_index_alone: Path) -> None:
    """Let the mirrors file lead to the narrowed source."""
    narrow(project, project / "sources")
    rules = yaml.safe_load(python_index_alone.read_text())
    links = pip_settings.settings().get("find-links", "")
    rules.setdefault("pip", {})["find-links"] = f"{project / 'sources'} {links}".strip()
    python_index_alone.write_text(yaml.safe_dump(rules))


def compiled(engine: str, project: Path, layer: str, *settings: str) -> dict[str, list[str]]:
    """Build an image with a layer; return the architecture of each object of its libraries."""
    write_image(project, "kernels", (*LAYERS, layer))
    words = ["--project", project, "build", "slurm-generic", "kernels"]
    for setting in ("pytorch-wheel.variant=cu130", f"{layer}.arch=sm_80", *settings):
        words += ["--set", setting]
    succeeded(sifwright(*words, "--output", project / "build", timeout=SECONDS))
    image = project / "build/slurm-generic/kernels/image.sif"
    listed = succeeded(run([engine, "exec", image, "python", "-c", LIST]))
    image.unlink()  # 3 GB
    objects: dict[str, list[str]] = json.loads(listed.stdout)
    return objects


@pytest.mark.builds("flash-attention", by="make test-slow", depth="imported", vendor="nvidia")
@pytest.mark.usefixtures("narrowed")
def test_flash_attention_is_compiled_and_imported(engine: str, project: Path) -> None:
    objects = compiled(engine, project, "flash-attention")
    assert objects == {name: ["sm_80"] * count for name, count in FLASH_ATTENTION.items()}


@pytest.mark.builds(
    "deepspeed",
    by="make test-slow",
    depth="imported",
    vendor="nvidia",
    options={"ops": "true", "arch": "sm_80"},
)
@pytest.mark.usefixtures("python_index_alone")
def test_operators_of_deepspeed_are_compiled_and_loaded(engine: str, project: Path) -> None:
    objects = compiled(engine, project, "deepspeed", "deepspeed.ops=true")
    assert objects == {name: ["sm_80"] * count for name, count in DEEPSPEED.items()}
