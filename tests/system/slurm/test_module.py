"""From the image to a training through EasyBuild and a module, as the README says it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, sifwright
from tests.spread import spread
from tests.system.easybuild.easybuild import EasyBuild
from tests.system.packages.installations import make_wheel
from tests.system.slurm.conftest import copy_definitions, job_script
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.slurm.slurm import Cluster

pytestmark = pytest.mark.image

SHOW = """\
import os, torch, toy, torch.distributed as dist
dist.init_process_group("gloo")
size = torch.ones(1)
dist.all_reduce(size)
rank, module, sif = (os.environ[name] for name in ("RANK", "SIFWRIGHT_MODULE", "SIF"))
line = f"{rank} {int(size)} {toy.version} {module} {sif}{chr(10)}"
os.write(1, line.encode())  # in one piece
dist.destroy_process_group()
"""
TRAIN = "conda-python-distributed examples/train_digits.py --epochs 5 --min-accuracy 0.9"


@pytest.fixture(scope="module")
def installed(cluster: Cluster, image: Path) -> EasyBuild:
    """Install the image of site local from the output of `sifwright easyconfig`."""
    done = sifwright("easyconfig", "local", "pytorch")
    assert done.returncode == 0, done.stdout + done.stderr
    (config,) = (image.parent / "easybuild").glob("PyTorch-*.eb")
    eb = EasyBuild(prefix=cluster.files.shared / "easybuild")
    eb.install(config)
    return eb


def loaded(eb: EasyBuild, script: str) -> list[str]:
    """Return the words of a shell of the site that loads the module."""
    words = ["source /usr/share/lmod/lmod/init/bash", f"module use '{eb.modules}'"]
    return ["bash", "-c", "; ".join([*words, "module load PyTorch", script])]


@pytest.mark.all
def test_a_module_trains_on_two_nodes(slurm: Cluster, installed: EasyBuild) -> None:
    command = f"srun --quiet -N2 -n4 singularity exec $SIF {TRAIN}"
    done = slurm.run(*loaded(installed, command), cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"test accuracy 0\.9\d+ \(\d+/\d+\) on 4 ranks", done.stdout), done.stdout
    assert not re.search(r"(?m)^(INFO|WARNING)", done.stderr), done.stderr


@pytest.fixture(scope="module")
def project(cluster: Cluster) -> Path:
    """Make the definitions with a site that is this cluster; without an image of its own."""
    facts = {"modules": {"purge": "plain"}, "job": {"time": "00:02:00"}}
    folder = copy_definitions(cluster.files.shared / "modules", facts)
    (folder / "show.py").write_text(SHOW)
    return folder


def _script(project: Path, *words: object) -> str:
    shape = ("--nodes", 2, "--tasks-per-node", 1)
    return job_script(project, *shape, *words, "--", "show.py", cwd=project)


@pytest.mark.parametrize("export", spread(["NONE", "ALL"], ["NONE"]))
def test_a_job_script_takes_the_image_and_packages_of_a_module(
    slurm: Cluster, installed: EasyBuild, project: Path, export: str
) -> None:
    """Submit from a shell that has loaded nothing."""
    wheel = make_wheel(project / "wheels")
    install = f"pytorch-pip install --no-index --force-reinstall '{wheel}'"
    done = slurm.run(*loaded(installed, install), check=False)
    assert done.returncode == 0, done.stderr
    (version,) = (path.stem for path in (installed.modules / "PyTorch").iterdir())
    text = _script(project, "--module", f"PyTorch/{version}", "--module-path", installed.modules)
    number = slurm.submit(text, f"--export={export}", cwd=project)
    job = slurm.wait(number)
    assert job.state == "COMPLETED", job.errors
    (root,) = installed.prefix.glob("software/PyTorch/*")
    (sif,) = root.glob("*.sif")
    ranks = sorted(line.split() for line in job.output.splitlines())
    assert ranks == [[rank, "2", "1.0", f"PyTorch/{version}", str(sif)] for rank in "01"]
    assert not re.search(r"(?m)^(INFO|WARNING)", job.errors), job.errors


def test_a_loaded_module_survives_the_purge_of_the_site(
    slurm: Cluster, installed: EasyBuild, project: Path
) -> None:
    """Keep SIF, which the job inherits; `module purge` would remove it and the binds."""
    (project / "job.sh").write_text(_script(project))
    words = f"sbatch --parsable --output={project}/%j.out {project}/job.sh"
    done = slurm.run(*loaded(installed, words), cwd=project)
    job = slurm.wait(int(done.stdout.split()[-1]))
    text = (project / f"{job.number}.out").read_text()
    assert job.state == "COMPLETED", text
    (sif,) = installed.prefix.glob("software/PyTorch/*/*.sif")
    ranks = [line for line in text.splitlines() if " PyTorch/" in line]  # beside torch's warnings
    assert [line.split()[-1] for line in ranks] == [str(sif)] * 2


def test_packages_are_not_packed_while_a_job_may_use_them(
    slurm: Cluster, installed: EasyBuild
) -> None:
    """Look for the job, as processes on another node cannot be seen from here."""
    (software,) = installed.prefix.glob("software/PyTorch/*/user-software")
    (software / "package").touch()
    number = slurm.submit("sleep 600", "--nodes=1", "--job-name=training")
    assert wait_for(lambda: slurm.fields(number)["JobState"] == "RUNNING")
    refused = slurm.run(*loaded(installed, "make-squashfs"), check=False)
    assert refused.returncode != 0
    assert re.search(rf"job {number} \(training\) on nid\d+, which may use it", refused.stderr)
    slurm.cancel_everything()
    packed = slurm.run(*loaded(installed, "make-squashfs"), check=False)
    assert packed.returncode == 0, packed.stderr
    assert slurm.run(*loaded(installed, "unmake-squashfs")).returncode == 0
