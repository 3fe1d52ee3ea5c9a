"""PyTorch for CUDA on a host without a toolkit: the toolkit comes as Python packages.

The layers' tests compile kernels with it, and Horovod with NCCL, for GPUs that this machine lacks.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.checkouts import copy_project
from tests.conftest import ROOT, run, sifwright
from tests.stacks import write

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 7200
pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS + 60)]
LAYERS = ("base-debian", "python-venv", "pytorch-wheel", "cuda-wheels", "mpich-wheel", "horovod")
OPTIONS = {
    "host": {"python": f"{sys.version_info.major}.{sys.version_info.minor}"},
    "pytorch-wheel": {"version": "2.13.0", "variant": "cu130"},
    "horovod": {"arch": "sm_80"},
}
# Compile as a release that no CUDA knows.
TOO_NEW = '#!/bin/bash\nexec /usr/bin/gcc -U__GNUC__ -D__GNUC__=99 "$@"\n'
SAYS = """
import os, torch, horovod.torch as hvd
print(torch.version.cuda, hvd.nccl_built() > 0, hvd.cuda_built(), os.environ["CUDA_HOME"])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project with a site that has compilers only, and an image of these layers."""
    folder = copy_project(tmp_path / "project", cuda=LAYERS)
    site = yaml.safe_load((ROOT / "defs/sites/slurm-generic.yaml").read_text())
    site |= {"modules": {}, "options": OPTIONS}
    site["native"]["provides"] = ["compilers"]
    del site["mpi"]
    write(folder / "defs/sites/plain.yaml", site)
    return folder


@pytest.mark.builds(
    "cuda-wheels", by="make test-slow", depth="compiled", vendor="nvidia", base="host"
)
@pytest.mark.builds(
    "pytorch-wheel",
    "mpich-wheel",
    by="make test-slow",
    depth="imported",
    vendor="nvidia",
    base="host",
)
@pytest.mark.builds(
    "horovod", by="make test-slow", depth="ran on CPUs", vendor="nvidia", base="host"
)
def test_kernels_and_horovod_are_compiled(project: Path, tmp_path: Path) -> None:
    prefix, compiler = tmp_path / "prefix", tmp_path / "bin" / "gcc"
    words = ("--project", project, "install", "plain", "cuda", "--prefix", prefix)
    compiler.parent.mkdir()
    compiler.write_text(TOO_NEW)
    compiler.chmod(0o755)
    path = {"PATH": f"{compiler.parent}:{os.environ['PATH']}"}
    refused = sifwright(*words, env=os.environ | path, timeout=SECONDS)
    assert (refused.returncode, prefix.exists()) == (5, False)
    assert "gcc is release 99, and the plan's CUDA compiler takes none after 15" in refused.stderr
    done = sifwright(*words, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "says.py").write_text(SAYS)
    script = f"source {prefix}/current/bin/activate; python {tmp_path}/says.py"
    answer = run(["bash", "-c", script]).stdout.split()
    assert answer[:3] == ["13.0", "True", "True"]
    assert answer[3] == str((prefix / "current").resolve() / "cuda")
