"""The view of a job in `status` and `--wait`: its running step, and the end of its log."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from sifwright.errors import BuildError
from sifwright.launch.submit import job_folder, job_view
from sifwright.launch.submit.job_folder import SubmittedJob
from sifwright.launch.submit.wait import wait
from sifwright.system.progress import Progress, QuietProgress, Timer
from sifwright.system.step_file import VARIABLE, with_step_file
from tests.unit.conftest import Cli


class Recorded(Progress):
    """A reporter behind the file, which keeps all that reaches it."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def started(self, step: str) -> None:
        self.seen.append(f"started {step}")

    def finished(self, step: str, state: str, seconds: float) -> None:
        self.seen.append(f"finished {step} {state} {seconds < 1}")

    def output(self, line: str) -> None:
        self.seen.append(line)

    def note(self, text: str) -> None:
        self.seen.append(text)


def test_the_step_that_runs(job: SubmittedJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """Show its seconds, too; the reporter gets the same as without the file."""
    monkeypatch.setenv(VARIABLE, f"{job.folder}/step")
    reporter = Recorded()
    progress = with_step_file(reporter)
    with Timer(progress) as timer:
        assert job_view.running_step(job) is None
        timer.start("torch")
        later = time.time() + 75
        monkeypatch.setattr(time, "time", lambda: later)
        step = job_view.running_step(job)
        assert step
        assert step.name == "torch"
        assert step.seconds >= 75
        assert job_view.running_step(replace(job, state="done")) is None
        progress.output("cc -c x.c")
        progress.note("a note")
    assert job_view.running_step(job) is None
    assert reporter.seen == ["started torch", "cc -c x.c", "a note", "finished torch done True"]


def test_a_file_that_cannot_be_written_stops_no_build(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone" / "step"))
    with Timer(with_step_file(QuietProgress())) as timer:
        timer.start("torch")


@pytest.mark.parametrize("text", ["[", "{}", '{"step": "x"}', '{"step": "x", "since": []}'])
def test_a_broken_file_is_no_step(job: SubmittedJob, text: str) -> None:
    (Path(job.folder) / "step").write_text(text)
    assert job_view.running_step(job) is None


def test_the_last_line_of_a_log(job: SubmittedJob) -> None:
    """Show the last line of a long log, without cursor codes and outer blanks."""
    log = Path(job.log)
    log.write_bytes(b"x" * 100_000 + b"\n  compiled \x1b[2Jfile 7 \xff\n\n")
    assert job_view.last_line(job) == "compiled \\x1b[2Jfile 7 \ufffd"


def test_the_last_line_of_a_job_before_those_of_flux(job: SubmittedJob) -> None:
    """Leave out the line that Flux 0.88.0 adds to the log of a script that fails."""
    ended = "Nov 27 21:39:15.249945 UTC 2026 broker.err[0]: rc2.0: /tmp/script Exited (rc=6) 3.5s"
    Path(job.log).write_text(f"Whole log: build.log\n{ended}\n")
    assert job_view.last_line(job) == "Whole log: build.log"


@pytest.mark.parametrize(
    ("state", "reason", "message"),
    [
        ("failed", "", "its node may not see"),
        ("failed", "unsatisfiable request", ""),
        ("queued", "", ""),
    ],
)
def test_a_job_without_a_log(job: SubmittedJob, state: str, reason: str, message: str) -> None:
    """Name a missing folder as the reason of a job that could not write a log."""
    line = job_view.last_line(replace(job, state=state, reason=reason))
    assert line == (f"no log: {message} {Path(job.log).parent}" if message else "")


def test_a_failed_job_ends_with_its_last_line(job: SubmittedJob) -> None:
    Path(job.log).write_text("sifwright: no space left\n")
    job_folder.write(replace(job, state="failed"))
    with pytest.raises(BuildError, match=r"mpi\): failed: sifwright: no space left"):
        wait(Path(job.folder).parent, {job.folder}, lambda _text: None)


def test_status_shows_it(job: SubmittedJob, run_cli: Cli, tmp_path: Path) -> None:
    """Show it also beside an installation, and without markup of a log."""
    Path(job.log).write_text("[bold]done[/bold]\n")
    job_folder.write(replace(job, state="failed"))
    (tmp_path / "jobs").rename(tmp_path / "prefix.jobs")
    shown = run_cli("status", "--prefix", tmp_path / "prefix").out.splitlines()
    assert shown[1].split() == ["7", "failed", "a/b", "torch,", "mpi", "[bold]done[/bold]", job.log]
    assert run_cli("status", "--output", tmp_path).out.startswith("no job was submitted: ")
