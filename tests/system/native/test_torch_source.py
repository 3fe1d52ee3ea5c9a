"""PyTorch built on the host from a mirror's source; two ranks add up by its MPI backend.

SIFWRIGHT_MIRRORS must lead to a copy of PyTorch's repository with the tag of a release, whose
commit is the pin. SIFWRIGHT_TEST_BUILD_VARIABLES is what that source needs, as in USE_MKLDNN=0. It
takes hours, or minutes with a filled compiler cache.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import yaml

from sifwright.catalog import mirrors
from tests.checkouts import copy_project
from tests.conftest import ROOT, run, sifwright
from tests.stacks import write

pytestmark = [pytest.mark.all, pytest.mark.timeout(6 * 3600)]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
PINS = Path("defs/layers/pytorch-source/pins.yaml")
SOURCE = yaml.safe_load((ROOT / PINS).read_text())["pytorch"]
LAYERS = ("base-debian", "python-venv", "build-tools", "mpich-wheel", "pytorch-source")
ADD_UP = """
import torch
torch.distributed.init_process_group("mpi")
total = torch.full((3,), torch.distributed.get_rank() + 1.0)
torch.distributed.all_reduce(total)
print(total.tolist())
"""


@pytest.fixture
def release() -> tuple[str, str]:
    """Return the mirror's newest release for this Python, and its commit."""
    url = mirrors.load().redirect(SOURCE["git"], "git")
    if url == SOURCE["git"]:
        pytest.skip(f"SIFWRIGHT_MIRRORS names no copy of {url}: set it to a mirrors file with one")
    tags = run(["git", "ls-remote", "--tags", url])
    assert tags.returncode == 0, tags.stderr
    lines = tags.stdout.splitlines()
    commits = {line.split("refs/tags/v")[-1]: line.split()[0] for line in lines}
    rows = yaml.safe_load((ROOT / "defs/versions.yaml").read_text())["torch"]
    # The table begins with the oldest.
    known = [(x, commits[x]) for x in rows if x in commits and PYTHON in rows[x]["python"]]
    if not known:
        pytest.skip(
            f"no release for Python {PYTHON} is in the copy of {SOURCE['git']}: add its tag"
        )
    return known[-1]


def test_two_ranks_add_up(release: tuple[str, str], tmp_path: Path) -> None:
    version, commit = release
    copy_project(tmp_path, source=LAYERS)
    write(tmp_path / PINS, {"pytorch": SOURCE | {"versions": {version: {"commit": commit}}}})
    variables = os.environ.get("SIFWRIGHT_TEST_BUILD_VARIABLES", "")
    words = [f"host.python={PYTHON}", f"host.program={sys.executable}"]
    words += [f"pytorch-source.version={version}", f"pytorch-source.build-variables={variables}"]
    words += ["pytorch-source.openblas=false"] if "BLAS=" in variables else []
    words = [word for setting in words for word in ("--set", setting)]
    options = ("--project", tmp_path, "install", "local", "source", "--prefix", tmp_path / "prefix")
    done = sifwright(*options, *words, timeout=None)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "add.py").write_text(ADD_UP)
    script = f"source {tmp_path}/prefix/current/bin/activate; mpiexec -n 2 python {tmp_path}/add.py"
    assert run(["bash", "-c", script]).stdout == "[3.0, 3.0, 3.0]\n" * 2
