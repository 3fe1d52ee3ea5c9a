"""The graph of jobs, and the words of Slurm, PBS and Flux."""

import errno
import json
import re
import subprocess
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from sifwright.catalog.layer_builds import Resources
from sifwright.catalog.model import Catalog
from sifwright.cli.options.submission import way_out
from sifwright.errors import MachineError
from sifwright.launch.submit import job_folder, job_script
from sifwright.launch.submit.by_hand import commands
from sifwright.launch.submit.graph import BuildJob, Task, build_jobs
from sifwright.launch.submit.job_folder import SubmittedJob
from sifwright.launch.submit.job_script import render_script
from sifwright.launch.submit.jobs_place import of_images
from sifwright.launch.submit.schedulers import (
    SCHEDULERS,
    JobState,
    Scheduler,
    answer,
    clock,
    slurm_states,
)
from sifwright.launch.submit.submission import prepare
from tests.unit.conftest import CHECKOUT, Cli

LARGE = Resources(cores=32, memory_gb=128, hours=6)


def chain(image: str, *names: str, large: str = "") -> list[Task]:
    """Return the missing tasks of an image; tasks with the same names before them are equal."""
    steps = [
        Task(
            key=" ".join(names[: number + 1]),
            name=name,
            parent=" ".join(names[:number]),
            image=image,
            words=("build", image, "--until", name),
            resources=LARGE if name == large else Resources(),
        )
        for number, name in enumerate(names)
    ]
    last = Task(
        key=image, name="image", parent=" ".join(names), image=image, words=("build", image)
    )
    return [*steps, last]


def describe_jobs(jobs: list[BuildJob]) -> list[str]:
    """Return each job as `steps (images) < the job before`."""
    return [
        f"{'+'.join(task.name for task in job.tasks)} ({' '.join(job.images)}) < {job.after}"
        for job in jobs
    ]


def test_one_image_of_small_steps_is_one_job() -> None:
    (job,) = build_jobs([chain("a", "base", "torch")], {})
    assert describe_jobs([job]) == ["base+torch+image (a) < "]
    assert job.tasks[-1].words == ("build", "a")
    assert job.resources == Resources(hours=1.5)


def test_a_large_step_is_a_job_of_its_own() -> None:
    jobs = build_jobs([chain("a", "base", "torch", "mpi", large="torch")], {})
    assert describe_jobs(jobs) == ["base (a) < ", "torch (a) < base", "mpi+image (a) < base torch"]
    assert [job.resources.cores for job in jobs] == [4, 32, 4]


def test_images_share_the_steps_in_which_they_are_alike() -> None:
    chains = [chain("a", "base", "torch"), chain("b", "base", "torch"), chain("c", "base", "mpi")]
    assert describe_jobs(build_jobs(chains, {})) == [
        "base (a b c) < ",
        "torch (a b) < base",
        "image (a) < base torch",
        "image (b) < base torch",
        "mpi+image (c) < base",
    ]


def test_jobs_that_wait_already_are_not_submitted_again() -> None:
    chains = [chain("a", "base", "torch"), chain("b", "base", "mpi")]
    assert describe_jobs(build_jobs(chains, {"base": "17", "base torch": "17", "a": "17"})) == [
        "mpi+image (b) < 17"
    ]


@pytest.mark.parametrize(
    ("name", "directives"),
    [
        ("slurm", "nodes=1 ntasks=1 cpus-per-task=32 mem=128G time=06:00:00 output=log"),
        ("flux", "nslots=1 cores-per-slot=32 time-limit=360m output=log"),
    ],
)
def test_directives_of_a_scheduler(name: str, directives: str) -> None:
    scheduler = SCHEDULERS[name]
    pairs = [*scheduler.resources(LARGE), *scheduler.output("log")]
    assert " ".join("=".join(pair) for pair in pairs) == directives


def test_hours_as_a_clock() -> None:
    assert [clock(hours) for hours in (0.5, 1.75, 100)] == ["00:30:00", "01:45:00", "100:00:00"]


def test_states_of_slurm() -> None:
    queued = "8|PENDING|Priority\n12|PENDING|PartitionTimeLimit\n"
    text = f"7|RUNNING|None\n{queued}9|CANCELLED by 0\n10|NODE_FAIL|NodeDown\n11|COMPLETED\n"
    assert slurm_states(f"1|\n{text}13|PENDING|a|b\n3\n") == {
        "7": ("running", ""),
        "8": ("queued", ""),
        "9": ("cancelled", ""),
        "10": ("failed", "NODE_FAIL"),
        "11": ("done", ""),
        "12": ("queued", "PartitionTimeLimit"),
        "13": ("queued", "a|b"),
    }


def test_the_script_of_a_site(
    real: Catalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Let the user's directive replace the layer's, and the layer's replace the site's."""
    monkeypatch.setenv("PBS_ACCOUNT", "NCAR0001")
    submission = prepare(
        [real.sites["derecho"]], "", ["l=walltime=09:00:00", "q=cpu"], of_images(str(tmp_path))
    )
    (job, *_) = build_jobs([chain("derecho/x", "torch", large="torch")], {})
    text = render_script(submission, job, tmp_path / "folder", tmp_path / "log")
    assert [line for line in text.splitlines() if line.startswith("#PBS")] == [
        "#PBS -q cpu",
        "#PBS -N torch",
        "#PBS -l select=1:ncpus=32:mem=128gb",
        "#PBS -l walltime=09:00:00",
        f"#PBS -o {tmp_path}/log",
        "#PBS -j oe",
        "#PBS -k doe",
        "#PBS -A NCAR0001",
    ]


def test_facts_of_a_site_for_builds(real: Catalog, tmp_path: Path) -> None:
    """Take facts for builds, not for training jobs; on another machine none, proxies included."""
    (job,) = build_jobs([chain("frontier/x", "torch")], {})

    def script(scheduler: str, *given: str) -> str:
        submission = prepare([real.sites["frontier"]], scheduler, given, of_images(str(tmp_path)))
        return render_script(submission, job, tmp_path / "folder", tmp_path / "log")

    at_site, elsewhere = script("", "account=x"), script("pbs")
    assert "#SBATCH --partition=extended" in at_site
    assert "disable_rdzv_get" not in at_site
    proxy = "[[ -v https_proxy ]] || export https_proxy=http://proxy.ccs.ornl.gov:3128/"
    assert at_site.index("settings/environment") < at_site.index(proxy)
    assert "proxy" not in elsewhere
    assert "#PBS -q" not in elsewhere


@pytest.mark.parametrize(("given", "hours"), [("l=place=free", "06"), ("q=cpu", "12")])
def test_the_longest_job_of_a_queue(real: Catalog, tmp_path: Path, given: str, hours: str) -> None:
    """Ask for no more hours than the site's own queue allows."""
    steps = chain("derecho/x", "torch", "vision")
    tasks = tuple(replace(step, resources=LARGE) for step in steps[:2])
    job = BuildJob(tasks=tasks, images=("derecho/x",))
    submission = prepare([real.sites["derecho"]], "", ["A=x", given], of_images(str(tmp_path)))
    text = render_script(submission, job, tmp_path / "folder", tmp_path / "log")
    assert f"#PBS -l walltime={hours}:00:00" in text


@pytest.mark.parametrize(("words", "cut"), [([], True), (["--directive=q=cpu"], False)])
def test_hours_that_a_queue_does_not_give(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], *, cut: bool
) -> None:
    """Say that an installation may end early; it goes on in the next job."""
    monkeypatch.setenv("PBS_ACCOUNT", "NCAR0001")
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    command = ["install", "derecho", "pytorch-source", f"--prefix={tmp_path}/prefix"]
    done = run_cli("--project", CHECKOUT, *command, "--submit=print", *words)
    assert done.code == 0, done.err
    line = r"install asks for 6 of [0-9.]+ hours, the queue's most; if it ends early, submit again"
    assert bool(re.search(line, done.out)) == cut


def test_the_way_out_of_a_login_node(real: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PBS_ACCOUNT", "NCAR0001")
    arguments = Namespace(image="", settings=["a.b=c"], prefix="/scratch/pytorch", submit=None)
    (line,) = way_out(arguments, real.sites["derecho"])
    command = "install derecho --set=a.b=c --prefix=/scratch/pytorch --submit"
    assert line == f"in a job: sifwright {command}"


def test_the_log_of_an_earlier_job_goes(real: Catalog, tmp_path: Path) -> None:
    """Remove the log: PBS would append to it."""
    submission = prepare([real.sites["derecho"]], "", ["A=x"], of_images(str(tmp_path)))
    (job,) = build_jobs([chain("derecho/x")], {})
    log = tmp_path / "derecho" / "x" / "image.job.log"
    log.parent.mkdir(parents=True)
    log.write_text("earlier")
    assert job_script.write(submission, job).log == log
    assert not log.exists()


def test_commands_for_a_shell(real: Catalog, tmp_path: Path) -> None:
    """Keep the id of jobs that others wait for; sbatch may name a cluster behind it."""
    jobs = build_jobs([chain("a", "base", "torch"), chain("b", "base", "mpi")], {"base": "17"})
    jobs += build_jobs([chain("c", "base", "torch", large="torch")], {})
    submission = prepare([real.sites["frontier"]], "", ["account=x"], of_images(str(tmp_path)))
    lines = list(commands(submission, [(job, Path(f"/{job.name}.sh")) for job in jobs]))
    sbatch = "sbatch --parsable --export=NIL"
    assert lines == [
        f"{sbatch} --dependency=afterok:17 --kill-on-invalid-dep=yes /a.sh",
        f"{sbatch} --dependency=afterok:17 --kill-on-invalid-dep=yes /b.sh",
        f"job3=$({sbatch} /base.sh)",
        f"job4=$({sbatch} --dependency=afterok:${{job3%%;*}} --kill-on-invalid-dep=yes /torch.sh)",
        f"{sbatch} --dependency=afterok:${{job4%%;*}} --kill-on-invalid-dep=yes /c.sh",
    ]


@pytest.mark.parametrize(
    "case",
    [
        ("", "exit 2", "2"),
        ("", "kill -TERM $$", "143"),
        ("kill -TERM $$", "", "1"),
        ("exit 3", "", "1"),
    ],
)
def test_the_status_of_a_job(
    real: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[str, str, str]
) -> None:
    """Keep the settings of a job that a signal ends: it may be started again."""
    settings, program, status = case
    script = tmp_path / "program"
    script.write_text(f"#!/bin/sh\n{program}\n")
    script.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(script))
    submission = prepare([real.sites["lumi"]], "", ["account=project_1"], of_images(str(tmp_path)))
    task = Task(key="k", name="torch", parent="", image="lumi/x", words=("no-command",))
    (job,) = build_jobs([[task]], {})
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "environment").write_text(f"{settings}\n")
    text = render_script(submission, job, tmp_path, tmp_path / "log")
    subprocess.run(["/bin/bash", "-c", text], check=False, capture_output=True)
    assert (tmp_path / "status").read_text() == f"{status}\n"
    assert (tmp_path / "settings").exists() == (status != "2")


Exchanges = Iterator[dict[str, Any]]


def play(monkeypatch: pytest.MonkeyPatch, file: str) -> Exchanges:
    """Answer each command as the scheduler did by hand; the file names its release."""
    path = Path(__file__).parent / "dialogues" / file
    exchanges: Exchanges = iter(json.loads(path.read_text(encoding="utf-8"))["dialogue"])

    def capture(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        exchange = next(exchanges)
        assert words == exchange["command"]
        out, err = ("\n".join(exchange[name]) for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(words, exchange["status"], out, err)

    monkeypatch.setattr("sifwright.system.processes.capture", capture)
    return exchanges


def submitted(scheduler: Scheduler, script: str, before: str = "") -> str:
    return scheduler.job_id(answer(scheduler.submit(f"/scratch/rec/{script}.sh", before)))


def submit_six(scheduler: Scheduler, ids: list[str]) -> None:
    """Submit the scripts of a dialogue; the second and the third wait for the one before."""
    scripts = ("job", "broken", "job", "slow", "wide", "over")
    after = ("", ids[0], ids[1], "", "", "")
    assert [submitted(scheduler, *pair) for pair in zip(scripts, after, strict=True)] == ids


def words_of(states: dict[str, JobState]) -> str:
    return " ".join(state for state, _ in states.values())


def test_the_words_of_a_real_pbs(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanges, pbs = play(monkeypatch, "openpbs.json"), SCHEDULERS["pbs"]
    ids = [f"{number}.pbshost" for number in range(45, 51)]
    submit_six(pbs, ids)
    with pytest.raises(MachineError, match=r"^qsub: Unknown queue$"):
        submitted(pbs, "refused")
    states = pbs.states([*ids, "99.pbshost"])
    assert words_of(states) == "running queued queued running queued running"
    never = "Can Never Run: Insufficient amount of resource: ncpus (R: 64 A: 8 T: 8)"
    assert [states[name].reason for name in ids] == ["", "", "", "", never, ""]
    answer(pbs.cancel(ids[3:5]))
    with pytest.raises(MachineError, match=f"^qdel: Job has finished {ids[3]}$"):
        answer(pbs.cancel([ids[3]]))
    states = pbs.states(ids)
    assert words_of(states) == "done failed cancelled cancelled cancelled failed"
    assert states[ids[5]].reason == "exceeded resource walltime"
    # From here on without job history.
    slow = submitted(pbs, "slow")
    behind = submitted(pbs, "broken", slow)
    states = pbs.states([ids[0], slow, behind])
    assert (list(states), words_of(states)) == ([slow, behind], "running queued")
    answer(pbs.cancel([slow]))
    assert pbs.states([slow, behind]) == {}
    assert next(exchanges, None) is None


def test_the_words_of_a_real_flux(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanges, flux = play(monkeypatch, "flux.json"), SCHEDULERS["flux"]
    ids = ["ƒBwXhcb", "ƒG2jihm", "ƒLXfYJT", "ƒQR1f8s", "ƒW4evR5", "ƒccBkZM"]
    submit_six(flux, ids)
    with pytest.raises(MachineError, match=r"ERROR: 'nowhere' is not a valid queue$"):
        submitted(flux, "refused")
    states = flux.states([*ids, "f123"])
    assert words_of(states) == "running queued queued running failed running"
    assert states[ids[4]].reason.startswith("unsatisfiable request: need 1 slot(s) of 64 core(s)")
    answer(flux.cancel([ids[3]]))
    with pytest.raises(MachineError, match=r"job is inactive$"):
        answer(flux.cancel([ids[3]]))
    states = flux.states(ids)
    assert words_of(states) == "done failed cancelled cancelled failed failed"
    assert states[ids[5]].reason == "resource allocation expired"
    assert next(exchanges, None) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["local", "--submit"], "--submit: site 'local' has no scheduler"),
        (["local", "--submit=slurm", "--no-cache"], "hand over the steps in the step cache"),
        (["local", "--submit=slurm", "--directive=mem=1 #"], "is no NAME or NAME=VALUE"),
        (["local", "--until", "pytorch-weel"], "--until: image 'pytorch' has no layer"),
        (["local", "--submit=lsf"], "invalid choice: 'lsf'"),
        (["lumi", "--submit"], "users build no SIFs at site 'lumi': fakeroot"),
        (["lumi", "--submit=print"], "By jobs of that machine: --submit slurm|pbs|flux."),
        (["alps", "--submit"], "users build no SIFs at site 'alps': podman builds OCI images"),
        (["local", "--wait"], "--wait: is for jobs"),
        (["local", "--directive=q=x"], "--directive: is for jobs"),
        (
            ["local", "--matrix", "pytorch-wheel.version=1.0,2.0"],
            "--matrix pytorch-wheel.version=1.0: ",
        ),
        (["local", "--submit=print:slurm", "--wait"], "--wait: nothing is submitted"),
        (["local", "--submit=slurm", "--directive=o=x"], "jobs that build have a log of their own"),
        (["local", "--submit=slurm", "--directive=array=1-3"], "and are no arrays"),
    ],
)
def test_refused_submissions(run_cli: Cli, tmp_path: Path, words: list[str], message: str) -> None:
    output = ["--output", str(tmp_path / "build")]
    refused = run_cli("--project", CHECKOUT, "build", *words, *output)
    assert refused.code == 2
    assert message in refused.err
    assert not (tmp_path / "build").exists()


def test_a_current_folder_that_is_gone(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    refused = run_cli("--project", CHECKOUT, "build", "local", "--submit=slurm")
    assert refused.code == MachineError.exit_code
    change = "    Change to another one: cd\n"
    assert refused.err.endswith(f"sifwright: the current folder is gone\n{change}")


def test_a_cache_that_cannot_be_written(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Submit and write no job, as none could keep its results."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", "/proc/cache")
    words = ["local", "--submit=slurm", "--output", str(tmp_path / "build")]
    refused = run_cli("--project", CHECKOUT, "build", *words)
    assert refused.code == MachineError.exit_code
    assert refused.err.startswith("sifwright: /proc/cache: the step cache cannot be used")
    assert "SIFWRIGHT_CACHE" in refused.err
    assert not (tmp_path / "build").exists()


@pytest.fixture
def slurm_words(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Accept each job as number 7; return the commands of Slurm that ran."""
    ran: list[list[str]] = []

    def capture(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(words)
        return subprocess.CompletedProcess(words, 0, "7\n" if words[0] == "sbatch" else "", "")

    monkeypatch.setattr("sifwright.system.processes.capture", capture)
    return ran


def test_a_job_whose_record_cannot_be_written_is_cancelled(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slurm_words: list[list[str]]
) -> None:
    write = job_folder.write

    def fill_disk(job: SubmittedJob) -> None:
        if job.id:
            raise OSError(errno.ENOSPC, "No space left on device", job.folder)
        write(job)

    monkeypatch.setattr(job_folder, "write", fill_disk)
    words = ["local", "--submit=slurm", "--output", str(tmp_path / "build")]
    refused = run_cli("--project", CHECKOUT, "build", *words)
    assert refused.code == MachineError.exit_code
    assert slurm_words[-1] == ["scancel", "7"]
    assert not (tmp_path / "build").exists()


def test_a_job_that_ctrl_c_meets_stays_on_record(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop while sbatch runs: Slurm may have accepted the job."""
    monkeypatch.setattr(
        "sifwright.launch.submit.submit.accepted", Mock(side_effect=KeyboardInterrupt)
    )
    words = ["local", "--submit=slurm", "--output", str(tmp_path / "build")]
    stopped = run_cli("--project", CHECKOUT, "build", *words)
    assert stopped.code == 130
    (record,) = job_folder.read_all(tmp_path / "build" / "jobs")
    assert record.id == ""
