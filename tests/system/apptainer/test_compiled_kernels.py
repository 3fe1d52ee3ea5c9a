"""FlashAttention compiled without a GPU, in an image with NVIDIA's compiler and torch on Debian.

The layer is the real one. Its source has one family of kernels only (narrow_flash_attention.py).
"""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest
import yaml

from sifwright.host.network import pip_settings
from tests.conftest import ROOT, run, sifwright
from tests.system.apptainer.narrow_flash_attention import narrow

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 9000
pytestmark = [pytest.mark.slow, pytest.mark.build, pytest.mark.timeout(SECONDS + 400)]

LAYERS = (
    *("base-debian", "python-venv", "build-tools", "pytorch-wheel", "cuda-wheels"),
    "flash-attention",
)
SETTINGS = ("pytorch-wheel.variant=cu130", "flash-attention.arch=sm_80")
# cuobjdump lists each object of the library that holds code for a GPU.
LIST = """
import subprocess, flash_attn
library = flash_attn.flash_attn_interface.flash_attn_gpu.__file__
print(subprocess.check_output(["cuobjdump", "--list-elf", library], text=True))
"""
OBJECTS = 6


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in ("defs", "runscripts"):
        shutil.copytree(ROOT / name, folder / name)
    layers = [{"layer": layer} for layer in LAYERS]
    text = json.dumps({"description": "FlashAttention, on Debian alone", "layers": layers})
    (folder / "defs/images/flash-attention.yaml").write_text(text)
    return folder


@pytest.fixture
def narrowed(project: Path, python_index_alone: Path) -> None:
    """Let the mirrors file lead to the narrowed source."""
    narrow(project, project / "sources")
    rules = yaml.safe_load(python_index_alone.read_text())
    links = pip_settings.settings().get("find-links", "")
    rules.setdefault("pip", {})["find-links"] = f"{project / 'sources'} {links}".strip()
    python_index_alone.write_text(yaml.safe_dump(rules))


@pytest.mark.builds("flash-attention", by="make test-slow", depth="imported", vendor="nvidia")
@pytest.mark.usefixtures("narrowed")
def test_flash_attention_is_compiled_and_imported(engine: str, project: Path) -> None:
    words = ["--project", project, "build", "slurm-generic", "flash-attention"]
    words += (word for setting in SETTINGS for word in ("--set", setting))
    done = sifwright(*words, "--output", project / "build", timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    image = project / "build/slurm-generic/flash-attention/image.sif"
    listed = run([engine, "exec", image, "python", "-c", LIST])
    assert listed.returncode == 0, listed.stderr
    assert re.findall(r"\.(\w+)\.cubin", listed.stdout) == ["sm_80"] * OBJECTS
    image.unlink()  # 3 GB
