"""Decisions about a job, from the facts of a site and the request."""

from dataclasses import replace

import pytest

from sifwright.catalog.model import Catalog, ComputeNode
from sifwright.catalog.site_contradictions import LAUNCHERS
from sifwright.errors import UsageError
from sifwright.launch import job_rules
from sifwright.launch.job import decide_job
from sifwright.launch.model import Job, JobRequest
from tests.catalogs import REAL

SITES = list(REAL.sites)
TRAIN = ("train.py",)


def _job(real: Catalog, site: str, **asked: object) -> Job:
    facts = real.sites[site]
    values = {"nodes": 2, "arguments": TRAIN, "account": "ada" if facts.job.needs_account else ""}
    return decide_job(facts, JobRequest(**(values | asked)))  # type: ignore[arg-type]


def test_one_rank_per_gpu_with_its_cpus(real: Catalog) -> None:
    job = _job(real, "lumi")
    assert (job.ranks, job.tasks, job.total_tasks, job.cpus, job.gpus) == (8, 8, 16, 7, 8)
    assert (job.launcher, job.run_in, job.torchrun, job.whole_node) == (
        "srun",
        "container",
        False,
        False,
    )


def test_torchrun_has_one_task_with_the_whole_node(real: Catalog) -> None:
    job = _job(real, "lumi", launcher="torchrun")
    assert (job.ranks, job.tasks, job.total_tasks, job.cpus) == (8, 1, 2, 56)
    assert (job.launcher, job.torchrun, job.whole_node) == ("srun", True, True)


def test_fewer_ranks_than_gpus_have_one_each(real: Catalog) -> None:
    job = _job(real, "lumi", ranks_per_node=4)
    assert (job.tasks, job.cpus, job.gpus, job.whole_node) == (4, 7, 8, False)


def test_one_rank_has_the_whole_node(real: Catalog) -> None:
    job = _job(real, "lumi", ranks_per_node=1)
    assert (job.tasks, job.cpus, job.torchrun, job.whole_node) == (1, 56, False, True)


def test_where_nobody_counts_gpus_there_are_as_many_as_ranks(real: Catalog) -> None:
    job = _job(real, "slurm-generic", ranks_per_node=3)
    assert (job.tasks, job.gpus, job.cpus) == (3, 3, 0)
    with pytest.raises(UsageError, match="--tasks-per-node"):
        _job(real, "slurm-generic")


def test_nodes_without_gpus(real: Catalog) -> None:
    site = replace(real.sites["slurm-generic"], vendor="cpu", node=ComputeNode(cpus=64))
    first = decide_job(site, JobRequest(nodes=1, arguments=TRAIN))
    assert (first.tasks, first.gpus, first.cpus) == (1, 0, 64)
    assert decide_job(site, JobRequest(nodes=1, arguments=TRAIN, ranks_per_node=6)).cpus == 10


def test_without_a_scheduler_torchrun_starts_several_ranks(real: Catalog) -> None:
    assert not _job(real, "local", nodes=1).torchrun
    several = _job(real, "local", nodes=1, ranks_per_node=4)
    assert (several.torchrun, several.tasks, several.ranks) == (True, 1, 4)
    mpi = _job(real, "local", nodes=1, ranks_per_node=4, launcher="mpirun")
    assert (mpi.torchrun, mpi.tasks) == (False, 4)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("dir/train_it.py", "x"), "train_it"),
        (("-u", "dir/train.py", "-c"), "train"),
        (("-uW", "ignore", "-X", "dev", "train.py"), "train"),
        (("-m", "package.train"), "package.train"),
        (("-um", "train", "x.py"), "train"),
        (("-c", "print()", "x.py"), "sifwright"),
        (("-", "x.py"), "sifwright"),
        (("--version",), "sifwright"),
        (("a b.py",), "sifwright"),
        (("x" * 65 + ".py",), "sifwright"),
    ],
)
def test_the_script_names_the_job(real: Catalog, arguments: tuple[str, ...], name: str) -> None:
    assert _job(real, "lumi", arguments=arguments).name == name
    assert _job(real, "lumi", arguments=arguments, name="mine").name == "mine"


def test_time_is_the_sites_unless_asked_for(real: Catalog) -> None:
    assert _job(real, "lumi").time == "00:30:00"
    assert _job(real, "lumi", time="02:00:00").time == "02:00:00"


def test_a_virtual_environment_runs_on_the_host(real: Catalog) -> None:
    assert _job(real, "lumi", environment="/venv").run_in == "host"
    with pytest.raises(UsageError, match="none is named"):
        _job(real, "lumi", run_in="host")


@pytest.mark.parametrize("site", SITES)
def test_launchers_of_other_schedulers_are_refused(real: Catalog, site: str) -> None:
    facts = real.sites[site]
    known = {facts.launcher, *facts.other_launchers, job_rules.TORCHRUN}
    every = {name for names in LAUNCHERS.values() for name in names} | {"aprun"}
    for name in every - known:
        with pytest.raises(UsageError, match=f"--launcher {name}: site '{site}'"):
            _job(real, site, launcher=name)


@pytest.mark.parametrize("site", SITES)
def test_everything_wrong_is_said_at_once(real: Catalog, site: str) -> None:
    with pytest.raises(UsageError) as caught:
        _job(real, site, nodes=0, launcher="x", name="a b", arguments=())
    message = str(caught.value)
    assert all(word in message for word in ("--nodes 0", "--launcher x", "--name 'a b'", "SCRIPT"))
    assert all(problem.fix for problem in caught.value.problems)


@pytest.mark.parametrize("site", SITES)
def test_amd_sites_say_whose_libraries_containers_have(real: Catalog, site: str) -> None:
    """Follow it in job scripts, modules and the benchmark, by one property each."""
    facts = real.sites[site]
    if (facts.vendor, facts.delivery) == ("amd", "sif"):
        assert facts.gpu_libraries
        assert facts.gpu_libraries.source
        expected = ("--rocm",) if facts.gpu_libraries.of == "host" else ()
        assert facts.gpu_flags == expected
        assert facts.gpu_variable == ("ROCM" if expected else "")
    else:
        assert facts.gpu_variable == {"nvidia": "NV", "cpu": "", "amd": "ROCM"}[facts.vendor]
