"""Job scripts of `sifwright jobscript`, as the real sbatch, slurmctld and srun take them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.system.slurm.conftest import copy_definitions, job_script

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.slurm.slurm import Cluster, Job

SHOW = """\
import json, os, sys
names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
names += ("ACTIVATED", "SITE_VAR", "CONDA_PREFIX")
print(json.dumps({name: os.environ.get(name) for name in names} | {"argv": sys.argv[1:]}))
"""
ODD = ["a  b", "it's\n#SBATCH --nodes=9", "%j", "$(touch x)"]
FAIL = "import os, sys, time; os.environ['RANK'] == '1' and sys.exit(42); time.sleep(600)"


@pytest.fixture(scope="module")
def project(cluster: Cluster) -> Path:
    """Make the definitions with a site that is this cluster, and lists its partitions."""
    facts: dict[str, object] = {"qos": {"normal": "all"}}
    facts["partitions"] = {"all": "everything", "short": "tests"}
    job = {"directives": {"partition": "all", "constraint": "x86"}, "resv-ports": True}
    facts |= {"job": {"time": "00:02:00", **job}}
    folder = copy_definitions(cluster.files.shared / "options", facts)
    (folder / "show.py").write_text(SHOW)
    return folder


def _venv(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to("/usr/bin/python3")
    return folder


@pytest.fixture(scope="module")
def venv(project: Path) -> Path:
    environment = _venv(project / "venv")
    text = f"export VIRTUAL_ENV={environment} PATH={environment}/bin:$PATH\n"
    (environment / "bin" / "activate").write_text(text)
    return environment


@pytest.fixture(scope="module")
def conda(project: Path) -> Path:
    """Make the layout of `conda create -p`, which has no bin/activate."""
    environment = _venv(project / "my_env")
    for name in ("conda-meta", "etc/conda/activate.d"):
        (environment / name).mkdir(parents=True)
    (environment / "conda-meta/state").write_text(
        '{"version": 1, "env_vars": {"SITE_VAR": "it\'s"}}'
    )
    script = 'export ACTIVATED="$CONDA_PREFIX $UNSET"\n'
    (environment / "etc/conda/activate.d/libs.sh").write_text(script)
    return environment


def _submit(slurm: Cluster, project: Path, *words: object, env: dict[str, str]) -> Job:
    """Write a script as users do, and give it to sbatch with nothing else said."""
    asked = ("--nodes", 2, "--tasks-per-node", 2, "--output", project / "job.sh", *words)
    job_script(project, *asked, cwd=project, env={**os.environ, **env})
    command = ("sbatch", "--parsable", project / "job.sh")
    number = int(slurm.run(*command, cwd=project, env=env).stdout)
    return slurm.wait(number)


def _read_ranks(text: str) -> list[dict[str, object]]:
    return sorted(map(json.loads, text.splitlines()), key=lambda rank: str(rank["RANK"]))


def test_slurm_takes_every_option_of_the_queue(slurm: Cluster, project: Path, venv: Path) -> None:
    (project / "logs").mkdir()
    words = ["--queue", "short", "--qos", "normal", "--constraint", "nvme", "--environment", venv]
    words += ["--job-output", "logs/%x-%j.out", "--directive", "comment=a/b"]
    words += ["--directive", "nice=7", "--directive", "exclusive", "--expand-variables"]
    words += ["--signal", "USR1@30"]
    arguments = ["-u", "show.py", "--master_addr=$MASTER_ADDR:${MASTER_PORT}", "$$RANK", "$RANK"]
    job = _submit(slurm, project, *words, "--", *arguments, env={"SBATCH_ACCOUNT": "project_1"})
    fields = slurm.fields(job.number)
    log = project / "logs" / f"show-{job.number}.out"
    assert job.state == "COMPLETED", log.read_text()
    assert (fields["Partition"], fields["Features"]) == ("short", "x86&nvme")
    assert fields["NumNodes"] == "2"
    assert (fields["JobName"], fields["Comment"], fields["Account"]) == ("show", "a/b", "project_1")
    assert (fields["StdOut"], fields["OverSubscribe"]) == (str(log), "NO")
    for rank, values in enumerate(_read_ranks(log.read_text())):
        address = f"--master_addr={values['MASTER_ADDR']}:{values['MASTER_PORT']}"
        assert values["argv"] == [address, "$RANK", str(rank)]
        assert values["MASTER_PORT"]


def test_a_conda_environment_on_two_nodes(slurm: Cluster, project: Path, conda: Path) -> None:
    """Start from a shell with another environment, of which nothing may be left."""
    words = ("--environment", conda, "--job-output", "conda-%j.out", "--", "show.py", *ODD)
    env = {"CONDA_PREFIX": "/other", "VIRTUAL_ENV": "/stale", "ACTIVATED": "other"}
    job = _submit(slurm, project, *words, env=env)
    text = (project / f"conda-{job.number}.out").read_text()
    assert job.state == "COMPLETED", text
    ranks = _read_ranks(text)
    assert [rank["RANK"] for rank in ranks] == ["0", "1", "2", "3"]
    for rank in ranks:
        assert (rank["WORLD_SIZE"], rank["argv"]) == ("4", ODD)
        assert rank["CONDA_PREFIX"] == str(conda)
        assert (rank["ACTIVATED"], rank["SITE_VAR"]) == (f"{conda} ", "it's")


def test_a_failing_rank_ends_the_job(slurm: Cluster, project: Path, venv: Path) -> None:
    """Return the highest status of all ranks, which is 143 of the ranks ended with it."""
    words = ("--environment", venv, "--job-output", "fail-%j.out", "--", "-c", FAIL)
    job = _submit(slurm, project, *words, env={})
    text = (project / f"fail-{job.number}.out").read_text()
    assert (job.state, job.exit_code) in {("FAILED", "42:0"), ("FAILED", "143:0")}, text
    assert "Exited with exit code 42" in text
