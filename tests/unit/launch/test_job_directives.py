"""Options of a job that become directives: partitions, qualities of service and any other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import UsageError
from sifwright.launch.directives import directives
from sifwright.launch.job import decide_job
from sifwright.launch.job_notes import notes_about_job
from sifwright.launch.model import Job, JobRequest

if TYPE_CHECKING:
    from sifwright.catalog.model import Catalog

TRAIN = ("train.py",)


def _job(real: Catalog, site: str, **asked: object) -> Job:
    values: dict[str, object] = {"nodes": 2, "arguments": TRAIN, "account": "ada"}
    return decide_job(real.sites[site], JobRequest(**(values | asked)))  # type: ignore[arg-type]


def _lines(real: Catalog, site: str, **asked: object) -> list[str]:
    return [str(line) for line in directives(_job(real, site, **asked))]


def _refused(real: Catalog, site: str, **asked: object) -> str:
    with pytest.raises(UsageError) as caught:
        _job(real, site, **asked)
    assert all(problem.fix for problem in caught.value.problems)
    return str(caught.value)


@pytest.mark.parametrize(
    ("site", "asked", "expected"),
    [
        ("derecho", {"partition": "develop"}, "-q develop"),
        ("derecho", {"job_output": "logs/x"}, "-o logs/x"),
        ("derecho", {"directives": ("l=job_priority=premium",)}, "-l job_priority=premium"),
        ("el-capitan", {"partition": "pbatch"}, "--queue=pbatch"),
        ("el-capitan", {"constraint": "gpu"}, "--requires=gpu"),
        ("el-capitan", {"job_output": "{{id}}.out"}, "--output={{id}}.out"),
        ("alps", {"qos": "anything"}, "--qos=anything"),  # its file lists none
        ("cirrus-epcc", {"qos": "lowpriority"}, "--qos=lowpriority"),
        ("lumi", {"partition": "dev-g"}, "--partition=dev-g"),
        ("lumi", {"job_output": "output_%x_%j.txt"}, "--output=output_%x_%j.txt"),
        ("lumi", {"directives": ("--exclusive",)}, "--exclusive"),
        ("lumi", {"directives": ("C=nvme",)}, "--constraint=nvme"),
        ("lumi", {"directives": ("gres=nvme:1",)}, "--gres=nvme:1"),
        ("lumi", {"directives": ("partition=secret",)}, "--partition=secret"),
        ("lumi", {"directives": ("p=secret",)}, "--partition=secret"),
        ("lumi", {"directives": ("nodes=2",)}, "--nodes=2"),
        ("perlmutter", {"constraint": "hbm80g"}, "--constraint=gpu&hbm80g"),
        ("perlmutter", {"constraint": "gpu&hbm80g"}, "--constraint=gpu&hbm80g"),
        ("perlmutter", {"directives": ("constraint=cpu",)}, "--constraint=cpu"),
        ("slurm-generic", {"partition": "any,other"}, "--partition=any,other"),
    ],
)
def test_each_scheduler_has_its_own_name_for_it(
    real: Catalog, site: str, asked: dict[str, object], expected: str
) -> None:
    environment = "" if "container" in real.sites[site].run_in else "/venv"
    ranks = None if real.sites[site].node.gpus else 4
    lines = _lines(real, site, environment=environment, ranks_per_node=ranks, **asked)
    assert lines.count(expected) == 1
    names = [re.match(r"-+\w[^= ]*", line) for line in lines if not line.startswith("-l ")]
    assert len({name[0] for name in names if name}) == len(names), "no directive is there twice"


@pytest.mark.parametrize(
    ("site", "asked", "message"),
    [
        ("lumi", {"partition": "standard-g,dev"}, "'dev' is not"),
        ("derecho", {"partition": "gpu"}, "anyway: --directive q=gpu"),
        ("cirrus-epcc", {"directives": ("gres=gpu:1",)}, "--gres=gpu:4"),
        ("cirrus-epcc", {"directives": ("gres=nvme:1",)}, "--gres=gpu:4"),
        ("perlmutter", {"constraint": "a|b"}, "lacks 'gpu', which site 'perlmutter' asks for"),
        ("lumi", {"directives": ("N=4",)}, "have --nodes=2\n    Use --nodes."),
        ("lumi", {"directives": ("-n=4",)}, "numbers of their own\n    Use --tasks-per-node."),
        ("lumi", {"directives": ("tasks-per-node=4",)}, "have --ntasks-per-node=8"),
        ("lumi", {"directives": ("cpus-per-task=1",)}, "have --cpus-per-task=7"),
        ("lumi", {"directives": ("gres=gpu:1",)}, "node.gpus in the site's file"),
        ("lumi", {"directives": ("ntasks-per-nod=3",)}, "Use --tasks-per-node"),
        ("lumi", {"directives": ("tres-per-node=gres:gpu:8",)}, "node.gpus in the site's file"),
        ("lumi", {"directives": ("time=1",)}, "Use --time."),
        ("lumi", {"directives": ("account=x",)}, "have --account=ada\n    Use --account."),
        ("lumi", {"directives": ("output=x",)}, "Use --job-output."),
        ("lumi", {"directives": ("mem=1 #",)}, "is no NAME or NAME=VALUE"),
        ("lumi", {"directives": ("=1",)}, "is no NAME or NAME=VALUE"),
        ("lumi", {"directives": ("a\n#SBATCH -N9",)}, "is no NAME or NAME=VALUE"),
        ("lumi", {"partition": "dev-g", "directives": ("p=x",)}, "--partition says it, too"),
        ("derecho", {"directives": ("l=select=9",)}, "have -l select=2:mpiprocs=4"),
        ("derecho", {"directives": ("l=walltime=1",)}, "have -l walltime=00:30:00"),
        ("derecho", {"directives": ("l=x",)}, "is no NAME or NAME=VALUE"),
        ("derecho", {"directives": ("l=place=free,walltime=9",)}, "names several resources"),
        ("el-capitan", {"directives": ("t=1m",), "environment": "/v"}, "Use --time."),
        ("lumi", {"constraint": "a\n#SBATCH --uid=0"}, "cannot stand in a job script"),
        ("lumi", {"qos": "-x"}, "cannot stand in a job script"),
    ],
)
def test_refusals_name_the_fact_and_the_fix(
    real: Catalog, site: str, asked: dict[str, object], message: str
) -> None:
    environment = {} if "container" in real.sites[site].run_in else {"environment": "/venv"}
    assert message in _refused(real, site, **(environment | asked))


def test_without_a_scheduler_there_are_none(real: Catalog) -> None:
    asked = {"partition": "x", "qos": "x", "constraint": "x", "job_output": "x"}
    message = _refused(real, "local", nodes=1, account="", directives=("mem=1",), **asked)
    assert message.count("has no scheduler that could read it") == 5


@pytest.mark.parametrize("variable", ["SBATCH_ACCOUNT", "SBATCH_PARTITION", "SBATCH_TIMELIMIT"])
def test_variables_that_sbatch_takes_over_a_script_are_told(real: Catalog, variable: str) -> None:
    job = _job(real, "lumi")
    assert list(notes_about_job(job, {})) == []
    (message,) = notes_about_job(job, {variable: "other"})
    assert f"{variable}='other'" in message
    same = {"SBATCH_ACCOUNT": "ada", "SBATCH_PARTITION": "standard-g"}
    assert list(notes_about_job(job, same)) == []


def test_an_image_without_digests_is_told(real: Catalog) -> None:
    checked = {"check_program": "x", "built_sif": "/b/image.sif"}
    (message,) = notes_about_job(_job(real, "lumi", **checked), {})
    assert "no image is at '/b/image.sif'" in message
    for more in ({"image_digests": "1 2+3"}, {"modules": ("pytorch",)}):
        assert list(notes_about_job(_job(real, "lumi", **checked, **more), {})) == []


def test_advice_against_a_launcher_is_told_with_its_source(real: Catalog) -> None:
    (message,) = notes_about_job(_job(real, "frontier", launcher="torchrun"), {})
    assert "OLCF advises against torchrun" in message
    assert "pytorch_frontier.rst" in message
    assert list(notes_about_job(_job(real, "frontier"), {})) == []
    assert list(notes_about_job(_job(real, "lumi", launcher="torchrun"), {})) == []


@pytest.mark.parametrize(
    ("argument", "noted"),
    [("--a=$MASTER_ADDR", True), ("${X}", True), ("5$", False), ("$1", False)],
)
def test_a_variable_in_an_argument_is_noted(real: Catalog, argument: str, *, noted: bool) -> None:
    arguments = ("train.py", argument)
    assert bool(list(notes_about_job(_job(real, "lumi", arguments=arguments), {}))) is noted
    expanding = _job(real, "lumi", arguments=arguments, expand_variables=True)
    assert list(notes_about_job(expanding, {})) == []
