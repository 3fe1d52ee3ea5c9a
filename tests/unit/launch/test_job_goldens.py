"""A job script for every site, launcher and engine stands in goldens/jobs/, for people to read."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sifwright.catalog.model import Catalog, Site
from sifwright.catalog.pmi import ImageMpi
from sifwright.launch.job import decide_job
from sifwright.launch.job_rules import TORCHRUN
from sifwright.launch.jobscript import render_jobscript
from sifwright.launch.model import JobRequest
from tests.catalogs import REAL
from tests.unit import golden
from tests.unit.conftest import CHECKOUT, program

GOLDENS = Path(__file__).parents[1] / "goldens" / "jobs"
PLACES: dict[str, dict[str, Any]] = {
    "container": {"built_sif": "/project/build/image.sif"},
    "host-mpi": {"built_sif": "/project/build/image.sif", "host_mpi": True},
    "host": {"environment": "/project/venv", "run_scripts": "/project/runscripts"},
    "mpich": {
        "environment": "/sw/app/pytorch/current",
        "run_scripts": "/project/runscripts",
        "mpi": ImageMpi(name="mpich", pmi=("pmi1",), version="5.0.1"),
    },
}
RUN_IN = {"host-mpi": "container", "mpich": "host"}


def _jobs(site: Site) -> list[tuple[str, str]]:
    """Yield its own launcher with every engine, and the other launchers with the usual one."""
    own = [(site.launcher, engine) for engine in site.run_in]
    own += [(site.launcher, "host-mpi")] if site.host_mpi else []
    return own + [(name, site.run_in[0]) for name in (*site.other_launchers, TORCHRUN)]


JOBS = [(name, *job) for name, site in REAL.sites.items() for job in _jobs(site)]
JOBS.append(("slurm-generic", "mpirun", "mpich"))  # an installation with an MPI of its own
NAMES = ["-".join(job) for job in JOBS]


def _script(site: Site, launcher: str, engine: str) -> str:
    request = JobRequest(
        nodes=1 if site.scheduler == "local" else 2,
        arguments=("train.py", "--epochs", "3", "--note", "it's"),
        launcher=launcher,
        run_in=RUN_IN.get(engine, engine),
        ranks_per_node=None if site.node.gpus else 4,
        account="project" if site.job.needs_account else "",
        **PLACES[engine],
    )
    return render_jobscript(decide_job(site, request))


@pytest.mark.parametrize(("site", "launcher", "engine"), JOBS, ids=NAMES)
def test_script(real: Catalog, site: str, launcher: str, engine: str) -> None:
    text = _script(real.sites[site], launcher, engine)
    golden.check(GOLDENS / f"{site}-{launcher}-{engine}.sh", text)


def test_no_golden_is_left_over() -> None:
    assert {path.stem for path in GOLDENS.iterdir()} <= set(NAMES)


def test_they_are_clean_for_shellcheck() -> None:
    """Check all scripts at once: shellcheck's start takes longer than its work."""
    files = sorted(GOLDENS.glob("*.sh"))
    command = [program("shellcheck"), "--norc", "--shell=bash", *map(str, files)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.stdout == ""
    assert (done.returncode, len(files)) == (0, len(JOBS))


@pytest.mark.parametrize("name", NAMES)
def test_directives_come_before_everything_else(name: str) -> None:
    """Keep directives before the first command: schedulers read none behind it."""
    lines = (GOLDENS / f"{name}.sh").read_text().splitlines()
    first = next(n for n, line in enumerate(lines) if not line.startswith("#"))
    results = [n for n, line in enumerate(lines) if line.startswith(("#SBATCH", "#PBS", "# flux:"))]
    assert all(n < first for n in results)
    assert results == list(range(1, len(results) + 1))


# Numbers, and text that is shell already or cannot be anything else by its schema.
PLAIN = {
    *("job.request.nodes", "job.tasks", "job.cpus", "job.gpus", "job.site.name", "name"),
    *("job.request.check_program", "launch", "line", "mark", "names", "shape"),
    '"; do" if loop.last else " \\\\"',
}


def test_every_value_goes_through_a_filter() -> None:
    for path in (CHECKOUT / "builder/sifwright/launch/templates").iterdir():
        text = path.read_text()
        assert "{#" not in text, "Jinja would take what is bash for a comment"
        for expression in re.findall(r"\{\{ (.*?) \}\}", text):
            filtered = re.search(r"\| (sh|path|words?|seconds)$", expression)
            assert filtered or expression in PLAIN, f"{path.name}: {expression}"
