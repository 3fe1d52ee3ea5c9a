"""Submission of jobs: its order, what a refusal leaves, and what two commands at once do."""

import subprocess
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from sifwright.catalog.model import Catalog
from sifwright.errors import BuildError, MachineError, UsageError
from sifwright.host.network import pip_settings
from sifwright.launch.submit import by_hand, job_folder, wait
from sifwright.launch.submit.cancel import cancel
from sifwright.launch.submit.graph import BuildJob, Task
from sifwright.launch.submit.job_claim import alone
from sifwright.launch.submit.job_folder import SubmittedJob
from sifwright.launch.submit.jobs_place import of_images
from sifwright.launch.submit.schedulers import SCHEDULERS, JobState
from sifwright.launch.submit.submission import Submission, prepare
from sifwright.launch.submit.submit import missing, submit

BASE = Task(key="1" * 9, name="base", parent="", image="local/a", words=())
IMAGE = Task(key="2" * 9, name="image", parent=BASE.key, image="local/a", words=())
JOBS = [
    BuildJob(tasks=(BASE,), images=("local/a",)),
    BuildJob(tasks=(IMAGE,), images=("local/a",), after=BASE.key),
]


@pytest.fixture
def submission(real: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Submission:
    """Return how to submit at a site with Slurm."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    pip_settings.settings()  # asks pip, once
    output = str(tmp_path / "new" / "build")
    return prepare([real.sites["slurm-generic"]], "", [], of_images(output))


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the commands that Slurm gets; it accepts every job, and knows none."""
    seen: list[list[str]] = []

    def capture(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        seen.append(words)
        number = sum(command[0] == "sbatch" for command in seen)
        output = f"Welcome!\n{number};cluster\n" if words[0] == "sbatch" else ""
        return subprocess.CompletedProcess(words, 0, output, "")

    monkeypatch.setattr("sifwright.system.processes.capture", capture)
    return seen


def refuse_after(number: int, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Let Slurm refuse all jobs after so many; return the other commands that it gets."""
    others: list[list[str]] = []
    left = iter(range(number))

    def capture(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        if words[0] != "sbatch":
            others.append(words)
            return subprocess.CompletedProcess(words, 0, "", "")
        job = next(left, None)
        return subprocess.CompletedProcess(words, int(job is None), f"{job}\n", "sbatch: no\n")

    monkeypatch.setattr("sifwright.system.processes.capture", capture)
    return others


def test_a_job_waits_for_the_job_before(submission: Submission, commands: list[list[str]]) -> None:
    """Take the id behind what a site's sbatch prints first, without the cluster's name."""
    assert [(job.id, job.after) for job in submit(submission, JOBS)] == [("1", ""), ("2", "1")]
    assert "--dependency=afterok:1" in commands[1]
    records = job_folder.read_all(submission.home.jobs)
    assert [job.id for job in records] == ["1", "2"]


@pytest.mark.parametrize("existing", [False, True])
def test_a_refusal_leaves_nothing(
    submission: Submission, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, existing: bool
) -> None:
    """Cancel the jobs before it, the last one first; keep folders that were there."""
    jobs = [*JOBS, replace(JOBS[1], tasks=(replace(IMAGE, key="3" * 9),), after=IMAGE.key)]
    others = refuse_after(2, monkeypatch)
    if existing:
        (tmp_path / "new").mkdir()
    with pytest.raises(MachineError, match=r"^sbatch: no$"):
        submit(submission, jobs)
    assert others == [["scancel", "1", "0"]]
    assert (tmp_path / "new").exists() == existing
    assert not (tmp_path / "new" / "build").exists()


@pytest.mark.usefixtures("commands")
def test_folders_of_ended_jobs_go(submission: Submission) -> None:
    """Remove jobs that were for these images only; keep those of others, and running ones."""
    jobs = submission.home.jobs
    record = submit(submission, JOBS[:1])[0]
    ended = {"gone": ("local/a",), "other": ("local/b",), "both": ("local/a", "local/b")}
    for number, (name, images) in enumerate(ended.items()):
        folder = jobs / name
        job_folder.make(folder)
        keys = (str(number),)
        job_folder.write(
            replace(record, folder=str(folder), images=images, keys=keys, state="failed")
        )
    running = jobs / "running"
    job_folder.make(running)
    job_folder.write(replace(record, folder=str(running), keys=("9",), state="running"))
    submit(submission, JOBS[:1])
    assert {path.name for path in jobs.iterdir()} == {"base-11111111-2", "other", "both", "running"}


@pytest.mark.usefixtures("commands")
def test_two_commands_at_once(submission: Submission) -> None:
    """Refuse the second one, also by another path to the same folder."""
    jobs = submission.home.jobs
    jobs.parent.mkdir(parents=True)
    link = jobs.parent.with_name("link")
    link.symlink_to(jobs.parent)
    with (
        alone(jobs),
        pytest.raises(MachineError, match="another command submits or cancels jobs now"),
        alone(link / jobs.name),
    ):
        pass
    with alone(jobs):
        pass


def test_cancel_waits_for_no_command_that_submits(
    submission: Submission, commands: list[list[str]]
) -> None:
    """Refuse, as the records are not complete yet."""
    jobs = submission.home.jobs
    submit(submission, JOBS[:1])
    with alone(jobs), pytest.raises(MachineError, match="another command submits or cancels"):
        cancel(jobs)
    assert [words[0] for words in commands] == ["sbatch"]


def test_a_command_that_is_killed_while_it_submits(
    submission: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave a record without an id, which the next command names and replaces."""
    records: list[SubmittedJob] = []
    jobs = submission.home.jobs

    def capture(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        records.extend(job_folder.refresh(jobs))
        return subprocess.CompletedProcess(words, 0, "7\n", "")

    monkeypatch.setattr("sifwright.system.processes.capture", capture)
    with alone(jobs):
        submit(submission, JOBS[:1])
    assert [(job.id, job.shown_state) for job in records] == [("", "queued, being submitted")]
    cut_off = replace(records[0], reason="")
    job_folder.write(cut_off)
    assert [job.state for job in job_folder.refresh(jobs)] == ["lost"]
    with alone(jobs):
        lacking = missing(submission, [[BASE]])
        assert [job.shown_state for job in lacking.lost] == [
            "lost, a command ended while it submitted it"
        ]
        assert [job.key for job in lacking.jobs] == [BASE.key]
        (again,) = submit(submission, lacking.jobs)
    assert job_folder.read_all(jobs) == [again]
    assert again.folder == f"{cut_off.folder}-2"


def test_jobs_behind_a_failed_job_are_submitted_again(
    submission: Submission, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Take a job for cancelled that waits for a failed one: the scheduler will remove it."""
    submit(submission, JOBS)
    known = {"1": JobState("failed"), "2": JobState("queued")}
    monkeypatch.setattr(SCHEDULERS["slurm"], "states", lambda _ids: known, raising=False)
    lacking = missing(submission, [[BASE, IMAGE]])
    assert ([job.key for job in lacking.jobs], lacking.earlier) == ([IMAGE.key], [])
    assert lacking.jobs[0].tasks == (BASE, IMAGE)
    assert [words[0] for words in commands] == ["sbatch", "sbatch"]


@pytest.mark.usefixtures("commands")
def test_jobs_of_another_scheduler(
    submission: Submission, real: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refuse to wait for an id that this scheduler does not know."""
    submit(submission, JOBS[:1])
    known = {"1": JobState("queued")}
    monkeypatch.setattr(SCHEDULERS["slurm"], "states", lambda _ids: known, raising=False)
    other = prepare([real.sites["slurm-generic"]], "pbs", [], submission.home)
    with pytest.raises(UsageError, match="jobs of another scheduler do a part already: 1"):
        missing(other, [[BASE, IMAGE]])


def test_a_refused_retry_keeps_the_failed_job(
    submission: Submission, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep its record and its log until the scheduler has accepted another job."""
    (job,) = submit(submission, JOBS[:1])
    assert len(commands) == 1
    Path(job.log).write_text("why it failed")
    failed = replace(job, state="failed")
    job_folder.write(failed)
    with monkeypatch.context() as patch:
        refuse_after(0, patch)
        with pytest.raises(MachineError):
            submit(submission, JOBS[:1])
    assert job_folder.read_all(submission.home.jobs) == [failed]
    assert Path(job.log).read_text() == "why it failed"
    (again,) = submit(submission, JOBS[:1])
    assert job_folder.read_all(submission.home.jobs) == [again]
    assert not Path(job.log).exists()


def test_jobs_that_cannot_be_taken_back(
    submission: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Name the job that stays in the queue, and keep its folder."""
    left = iter(range(1))

    def capture(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        job = next(left, None) if words[0] == "sbatch" else None
        return subprocess.CompletedProcess(words, int(job is None), "7\n", f"{words[0]}: no\n")

    monkeypatch.setattr("sifwright.system.processes.capture", capture)
    with pytest.raises(MachineError) as caught:
        submit(submission, JOBS)
    message, *_ = [problem for problem in caught.value.problems if "still" in problem.what]
    assert message.what == "still in the queue: 7: scancel: no"
    assert "sifwright cancel --output" in message.fix
    assert [job.id for job in job_folder.read_all(submission.home.jobs)] == ["7"]


@pytest.mark.parametrize(
    "name", ["SBATCH_PARTITION", "SQUEUE_STATES", "SACCT_FORMAT", "SCANCEL_STATE", "PBS_DPREFIX"]
)
def test_variables_that_are_options(
    submission: Submission, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Keep them from sbatch, as they would win over the lines of the script."""
    monkeypatch.setenv(name, "of-my-shell")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm/slurm.conf")
    seen: list[dict[str, str]] = []

    def capture(words: list[str], env: dict[str, str], **_: object) -> object:
        seen.append(env)
        return subprocess.CompletedProcess(words, 0, "7\n", "")

    monkeypatch.setattr("sifwright.system.processes.capture", capture)
    submit(submission, JOBS[:1])
    assert "SLURM_CONF" in seen[0]
    assert name not in seen[0]
    (line,) = by_hand.commands(submission, by_hand.write(submission, JOBS[:1]))
    assert line.startswith(f"env --unset={name} sbatch --parsable")


@pytest.mark.parametrize("path", ["my build", "a%j", "a{{id}}", "a:b"])
def test_a_path_that_no_log_can_have(real: Catalog, tmp_path: Path, path: str) -> None:
    site = real.sites["slurm-generic"]
    with pytest.raises(UsageError, match="cannot be a path in a job script"):
        prepare([site], "", [], of_images(str(tmp_path / path)))


def test_sites_of_other_machines_have_no_say(real: Catalog, tmp_path: Path) -> None:
    sites, home = [real.sites[name] for name in ("derecho", "frontier")], of_images(str(tmp_path))
    assert prepare(sites, "slurm", ["account=x"], home).site.proxies
    assert prepare(sites, "flux", [], home).site.job.directives == {}
    with pytest.raises(UsageError, match="jobs of sites 'derecho' and 'frontier' differ"):
        prepare(sites, "", ["A=x"], home)


@pytest.mark.parametrize("fact", ["proxies", "directives", "account", "hours"])
def test_sites_whose_jobs_differ(real: Catalog, tmp_path: Path, fact: str) -> None:
    site = real.sites["frontier"]
    assert site.builds is not None
    builds = replace(site.builds, hours=2 if fact == "hours" else site.builds.hours)
    if fact == "directives":
        builds = replace(builds, directives={"partition": "other"})
    job = replace(site.job, needs_account=fact != "account")
    proxies = {} if fact == "proxies" else site.proxies
    other = replace(site, name="other", job=job, builds=builds, proxies=proxies)
    with pytest.raises(UsageError, match="jobs of sites 'frontier' and 'other' differ"):
        prepare([site, other], "", ["account=x"], of_images(str(tmp_path)))


def test_states_in_the_accounting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask sacct for jobs that squeue has forgotten; squeue's own answer wins."""
    answers = {"squeue": "8|RUNNING|None\n", "sacct": "7|COMPLETED\n8|PENDING\n7.batch|FAILED\n"}

    def capture(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(words, 0, answers[words[0]], "")

    monkeypatch.setattr("sifwright.system.processes.capture", capture)
    states = SCHEDULERS["slurm"].states(["7", "8", "9"])
    assert {name: state for name, (state, _) in states.items()} == {"7": "done", "8": "running"}


@pytest.mark.parametrize("output", ["", "Welcome!", "7 jobs"])
def test_no_id_of_a_job(output: str) -> None:
    with pytest.raises(MachineError, match=r"^slurm: printed no id of a job"):
        SCHEDULERS["slurm"].job_id(output)


def test_the_last_job_is_cancelled_first(
    submission: Submission, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(submission, JOBS)
    known = {name: JobState("queued") for name in ("1", "2")}
    monkeypatch.setattr(SCHEDULERS["slurm"], "states", lambda _ids: known, raising=False)
    cancel(submission.home.jobs)
    assert commands[-1] == ["scancel", "2", "1"]


def waited(submission: Submission, monkeypatch: pytest.MonkeyPatch, *answers: object) -> list[str]:
    """Wait for a job that the scheduler calls done after these answers; return the notes."""
    (job,) = submit(submission, JOBS[:1])
    states = Mock(side_effect=[*answers, {"1": JobState("done")}])
    monkeypatch.setattr(SCHEDULERS["slurm"], "states", states, raising=False)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    notes: list[str] = []
    wait.wait(submission.home.jobs, {job.folder}, notes.append)
    return notes


@pytest.mark.usefixtures("commands")
def test_wait_for_a_job_that_the_scheduler_does_not_show_yet(
    submission: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = waited(submission, monkeypatch, {})
    assert notes == ["job 1: lost: base", "job 1: done: base"]


@pytest.mark.usefixtures("commands")
def test_wait_for_a_job_that_is_lost(
    submission: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BuildError, match="Give the same command again"):
        waited(submission, monkeypatch, *[{}] * 9)


@pytest.mark.usefixtures("commands")
@pytest.mark.parametrize("silent", [30, 40])
def test_wait_while_a_controller_is_restarted(
    submission: Submission, monkeypatch: pytest.MonkeyPatch, silent: int
) -> None:
    """Go on after looks without an answer; at last say that the jobs go on."""
    answers = [MachineError.of("squeue: no answer")] * silent
    if silent == 30:
        assert waited(submission, monkeypatch, *answers) == ["job 1: done: base"]
    else:
        with pytest.raises(MachineError, match="The jobs go on without this command"):
            waited(submission, monkeypatch, *answers)
