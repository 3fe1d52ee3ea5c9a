"""`jobscript --stage` on nodes with disks of their own, by the real sbcast."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from sifwright.launch import staging
from sifwright.launch.job import decide_job
from sifwright.launch.jobscript import render_jobscript
from sifwright.launch.model import JobRequest
from tests.conftest import ROOT, run
from tests.system.apptainer.steps import make_root
from tests.system.native.test_conda import ENVIRONMENT, make_conda
from tests.system.slurm.conftest import AS_ROOT, DISK, site_of_nodes
from tests.system.slurm.layout import NODES
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.slurm.slurm import Cluster

SHOW = "import os, sys; print(os.uname().nodename, sys.prefix)"
# Program that prints the paths of Python, of a script's Python, and of a link's target.
INSTALLED = """import os, subprocess, sys
pip = subprocess.run(["pip", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
print(os.uname().nodename, sys.prefix, pip.split()[3], os.path.realpath(sys.prefix + "/link"))
"""
WAIT = """import os, signal, sys
def end(*_):
    print("there", os.path.exists(sys.prefix), flush=True)
    sys.exit(44)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
signal.pause()
"""
CONTAINER = """import os
print(os.uname().nodename, os.environ["APPTAINER_CONTAINER"], open("/packages/note").read())
"""


@pytest.fixture
def environment(slurm: Cluster) -> Path:
    folder = slurm.files.shared / "environment-on-the-shared-disk"
    run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder])
    staging.pack_environment(folder)
    return folder


def _job(arguments: str = SHOW, **where: object) -> str:
    request = JobRequest(
        nodes=2,
        ranks_per_node=2,
        time="00:04:00",
        stage=True,
        arguments=("-c", arguments),
        run_scripts=str(ROOT / "runscripts"),
        **{name: str(path) for name, path in where.items()},  # type: ignore[arg-type]
    )
    text = render_jobscript(decide_job(site_of_nodes(), request))
    return text.replace(
        "set -euo pipefail", f"export SIFWRIGHT_STAGE_DIR={DISK}\nset -euo pipefail", 1
    )


@pytest.mark.usefixtures("disks")
def test_every_node_starts_from_its_own_disk(slurm: Cluster, environment: Path) -> None:
    job = slurm.sbatch(_job(environment=environment))
    # The step of the ranks may wait for the end of the step before, with a message.
    errors = [line for line in job.errors.splitlines() if not line.startswith("srun: ")]
    assert (job.state, errors) == ("COMPLETED", [])
    lines = [line.split() for line in job.output.splitlines()]
    prefix = lines[0][1]
    assert prefix.startswith(f"{DISK}/sw-0-{job.number}/e")
    assert sorted(lines) == sorted([node, prefix] for node in NODES[:2] for _ in range(2))


@pytest.mark.usefixtures("disks")
def test_a_full_disk_is_said(slurm: Cluster, environment: Path) -> None:
    slurm.run("mount", "-o", "remount,size=4k", DISK, host=NODES[1])
    job = slurm.sbatch(_job(environment=environment))
    assert (job.state, job.output.count(str(environment))) == ("COMPLETED", 4)
    assert f"job: {environment} was not copied to the nodes" in job.errors


@pytest.mark.usefixtures("disks", "mpi")
@pytest.mark.parametrize("launcher", ["srun", "mpirun"])
def test_the_ranks_end_before_their_files_go(
    slurm: Cluster, environment: Path, launcher: str
) -> None:
    """Send SIGTERM to the script alone, as Slurm does before a limit with --signal=B:TERM."""
    job = slurm.submit(_job(WAIT, environment=environment, launcher=launcher), env=AS_ROOT)
    assert wait_for(lambda: slurm.output(job).count("ready") == 4), slurm.output(job, "err")
    slurm.run("scancel", "--batch", "--signal=TERM", job)
    done = slurm.wait(job)
    assert done.state == "FAILED"
    assert "there False" not in done.output


def _take_away(text: str, last: str, *paths: Path) -> str:
    """Take shared files away once they are on the nodes: the ranks can only use the copies."""
    assert text.count(f"{last}\n") == 1
    moves = "".join(f"mv -T -- {path} {path}.away\n" for path in paths)
    return text.replace(f"{last}\n", f"{last}\n{moves}")


@pytest.fixture(scope="module", params=["venv", ENVIRONMENT])
def installation(cluster: Cluster, request: pytest.FixtureRequest) -> tuple[Path, Path]:
    """Install small layers, one of which makes an absolute link; return also the environment."""
    folder = cluster.files.shared / f"installed-{request.param.replace('/', '-')}"
    folder.mkdir()
    environment = f'"$INSTALL_PREFIX/{request.param}"'
    with make_conda(folder) as conda:
        conda.project.add("last", last=f"ln -s {environment}/pyvenv.cfg {environment}/link")
        by_conda = request.param == ENVIRONMENT
        done = conda.install(conda.project.prefix) if by_conda else conda.project.install()
    assert done.returncode == 0, done.stderr
    version = (folder / "prefix/current").resolve()
    return version, version / request.param


@pytest.mark.usefixtures("disks")
@pytest.mark.parametrize("part", [0, 1], ids=["whole", "environment"])
def test_an_installation_works_without_its_prefix(
    slurm: Cluster, installation: tuple[Path, Path], part: int
) -> None:
    taken = installation[part]
    staging.pack_environment(taken)
    staged = 'stage_environment "$venv/sifwright-stage.tar" || not_staged "$venv"'
    job = slurm.sbatch(_take_away(_job(INSTALLED, environment=taken), staged, taken))
    taken.with_name(f"{taken.name}.away").rename(taken)
    assert job.state == "COMPLETED", job.errors
    lines = [line.split() for line in job.output.splitlines()]
    assert sorted(node for node, *_ in lines) == [node for node in NODES[:2] for _ in range(2)]
    paths = [path for _, *paths in lines for path in paths]
    assert all(path.startswith(f"{DISK}/sw-0-{job.number}/e") for path in paths), paths


@pytest.mark.usefixtures("disks")
def test_an_image_and_squashed_packages_without_the_shared_files(
    slurm: Cluster, engine: str
) -> None:
    folder = slurm.files.shared / "image"
    root = make_root(folder / "root", "mkdir")
    shutil.copytree(ROOT / "runscripts", root / "usr/bin", dirs_exist_ok=True)
    (root / "usr/bin/python").symlink_to("python3")
    (modules,) = root.rglob("lib-dynload")
    shutil.copytree("/" / modules.relative_to(root), modules, dirs_exist_ok=True)
    (root / "packages").mkdir()
    (folder / "packages").mkdir()
    (folder / "packages/note").write_text("packages")
    sif, packages = folder / "small.sif", folder / "packages.squashfs"
    for command in ([engine, "build", sif, root], ["mksquashfs", folder / "packages", packages]):
        done = run(command)
        assert done.returncode == 0, done.stderr
    binds = f"export APPTAINER_BIND={packages}:/packages:ro,image-src=/ WITH_CONDA=true\n"
    staged = "unset APPTAINER_BIND SINGULARITY_BIND"
    text = _take_away(_job(CONTAINER, sif=sif), staged, sif, packages)
    job = slurm.sbatch(text.replace("set -euo pipefail", f"{binds}set -euo pipefail", 1))
    assert job.state == "COMPLETED", job.errors
    staged = f"{DISK}/sw-0-{job.number}/image.sif"
    lines = [line.split() for line in job.output.splitlines()]
    assert sorted(lines) == [[node, staged, "packages"] for node in NODES[:2] for _ in range(2)]
