"""Decisions about a job, from the facts of a site and the request."""

from dataclasses import replace

import pytest

from sifwright.catalog.model import Catalog, ComputeNode
from sifwright.launch.job import decide_job
from sifwright.launch.model import Job, JobRequest
from tests.catalogs import REAL

SITES = list(REAL.sites)
TRAIN = ("train.py",)


def _job(real: Catalog, site: str, **asked: object) -> Job:
    facts = real.sites[site]
    values = {"nodes": 2, "arguments": TRAIN, "account": "ada" if facts.job.needs_account else ""}
    return decide_job(facts, JobRequest(**(values | asked)))  # type: ignore[arg-type]


def test_fewer_ranks_than_gpus_have_one_each(real: Catalog) -> None:
    job = _job(real, "lumi", ranks_per_node=4)
    assert (job.tasks, job.cpus, job.gpus, job.whole_node) == (4, 7, 8, False)


def test_one_rank_has_the_whole_node(real: Catalog) -> None:
    job = _job(real, "lumi", ranks_per_node=1)
    assert (job.tasks, job.cpus, job.torchrun, job.whole_node) == (1, 56, False, True)


def test_nodes_without_gpus(real: Catalog) -> None:
    site = replace(real.sites["slurm-generic"], vendor="cpu", node=ComputeNode(cpus=64))
    first = decide_job(site, JobRequest(nodes=1, arguments=TRAIN))
    assert (first.tasks, first.gpus, first.cpus) == (1, 0, 64)
    assert decide_job(site, JobRequest(nodes=1, arguments=TRAIN, ranks_per_node=6)).cpus == 10


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
