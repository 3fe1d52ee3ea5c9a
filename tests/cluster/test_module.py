"""From the image to a training through EasyBuild and a module, as the README says it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.cluster.slurm import wait_for
from tests.conftest import ROOT, sifwright
from tests.modules.easybuild import EasyBuild

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.slurm import Cluster

pytestmark = pytest.mark.image

PATIENCE = 240.0  # seconds
TRAIN = "conda-python-distributed examples/train_digits.py --epochs 5 --min-accuracy 0.9"


@pytest.fixture(scope="module")
def installed(cluster: Cluster, image: Path) -> EasyBuild:
    """The image of site local, installed from what `sifwright easyconfig` writes."""
    made = sifwright("easyconfig", "local", "pytorch")
    assert made.returncode == 0, made.stdout + made.stderr
    (config,) = (image.parent / "easybuild").glob("PyTorch-*.eb")
    eb = EasyBuild(prefix=cluster.files.shared / "easybuild")
    root = eb.install(config)
    # One copy of the image, wherever one looks.
    (source,), (copy,) = config.parent.glob("*.sif"), eb.prefix.rglob("*.sif")
    assert source.samefile(image)
    assert copy.parent == root
    assert copy.stat().st_nlink == 1
    return eb


def loaded(eb: EasyBuild, script: str) -> list[str]:
    """A shell of the site, in which somebody loads the module."""
    words = ["source /usr/share/lmod/lmod/init/bash", f"module use '{eb.modules}'"]
    return ["bash", "-c", "; ".join([*words, "module load PyTorch", script])]


def test_a_module_trains_on_two_nodes(slurm: Cluster, installed: EasyBuild) -> None:
    command = f"srun --quiet -N2 -n4 singularity exec $SIF {TRAIN}"
    done = slurm.run(*loaded(installed, command), cwd=ROOT, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert re.search(r"test accuracy 0\.9\d+ \(\d+/\d+\) on 4 ranks", done.stdout), done.stdout
    assert not re.search(r"(?m)^(INFO|WARNING)", done.stderr), done.stderr


def test_a_batch_job_loads_it_itself(slurm: Cluster, installed: EasyBuild) -> None:
    """Without anything of the shell that submits it, as the job scripts of `jobscript`."""
    code = "import os, torch; print(os.environ['RANK'], torch.__version__)"
    step = f'srun --export=ALL singularity exec $SIF conda-python-distributed -c "{code}"'
    words = loaded(installed, step)[-1]
    job = slurm.sbatch(words, "--nodes=2", "--ntasks=2", "--export=NONE", timeout=PATIENCE)
    assert job.state == "COMPLETED", job.errors
    assert sorted(line.split()[0] for line in job.output.splitlines()) == ["0", "1"]
    assert not re.search(r"(?m)^(INFO|WARNING)", job.errors), job.errors


def test_packages_are_not_packed_while_a_job_may_use_them(
    slurm: Cluster, installed: EasyBuild
) -> None:
    """Processes on another node are not to be seen from here, the job is."""
    (software,) = installed.prefix.glob("software/PyTorch/*/user-software")
    (software / "package").touch()
    number = slurm.submit("sleep 300", "--nodes=1", "--job-name=training")
    assert wait_for(lambda: slurm.fields(number)["JobState"] == "RUNNING", PATIENCE)
    refused = slurm.run(*loaded(installed, "make-squashfs"), check=False)
    assert refused.returncode != 0
    assert re.search(rf"job {number} \(training\) on nid\d+, which may use it", refused.stderr)
    slurm.cancel_everything()
    packed = slurm.run(*loaded(installed, "make-squashfs"), check=False, timeout=PATIENCE)
    assert packed.returncode == 0, packed.stderr
    assert slurm.run(*loaded(installed, "unmake-squashfs")).returncode == 0
