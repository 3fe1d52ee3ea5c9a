"""The folder of a submitted job: its state, and the settings that only its owner reads."""

import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from sifwright.catalog import mirrors
from sifwright.errors import MachineError
from sifwright.launch.submit import job_folder, job_settings
from sifwright.launch.submit.cancel import cancel
from sifwright.launch.submit.job_folder import SubmittedJob
from sifwright.launch.submit.schedulers import SCHEDULERS, JobState


@pytest.fixture
def job(tmp_path: Path) -> SubmittedJob:
    """A job that was submitted."""
    folder = tmp_path / "jobs" / "torch-0123"
    job_folder.make(folder)
    (folder / "settings").mkdir()
    job = SubmittedJob(
        id="7",
        scheduler="slurm",
        images=("a/b",),
        steps=("torch",),
        keys=("0123",),
        log="log",
        folder=str(folder),
    )
    job_folder.write(job)
    return job


@pytest.mark.parametrize(
    ("known", "status", "expected"),
    [
        ({"7": JobState("running")}, "", "running"),
        ({"7": JobState("running")}, "0", "done"),
        ({"7": JobState("cancelled")}, "143", "cancelled"),
        ({}, "0", "done"),
        ({}, "6", "failed"),
        ({}, "", "lost"),
    ],
)
def test_state_of_a_job(
    job: SubmittedJob,
    monkeypatch: pytest.MonkeyPatch,
    known: dict[str, JobState],
    status: str,
    expected: str,
) -> None:
    monkeypatch.setattr(SCHEDULERS["slurm"], "states", lambda _ids: known, raising=False)
    folder = Path(job.folder)
    if status:
        (folder / "status").write_text(f"{status}\n")
    assert job_folder.refresh(folder.parent) == [replace(job, state=expected)]
    # A job that may come back keeps its settings.
    assert (folder / "settings").exists() == (expected in {"running", "lost"})


def test_cancel_writes_off_a_lost_job(job: SubmittedJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SCHEDULERS["slurm"], "states", lambda _ids: {}, raising=False)
    folder = Path(job.folder)
    assert cancel(folder.parent) == []
    assert job_folder.read_all(folder.parent) == [replace(job, state="cancelled")]
    assert not (folder / "settings").exists()


@pytest.mark.parametrize("said", ["Job has finished 7", "Unauthorized Request 7"])
def test_cancel_of_a_job_that_ends_at_once(
    job: SubmittedJob, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """As OpenPBS 23.06.06 answers for a job behind one that it has just deleted."""
    done = subprocess.CompletedProcess(["scancel"], 35, "", f"scancel: {said}\n")
    monkeypatch.setattr(
        SCHEDULERS["slurm"], "states", lambda _ids: {"7": JobState("queued")}, raising=False
    )
    monkeypatch.setattr("sifwright.system.processes.capture", lambda _words: done)
    folder = Path(job.folder).parent
    if "finished" in said:
        assert [ended.state for ended in cancel(folder)] == ["cancelled"]
    else:
        with pytest.raises(MachineError, match=r"^scancel: Unauthorized Request 7$"):
            cancel(folder)


def test_settings_reach_a_job_by_files_of_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mirrors file lies beside its folders, the certificates where only this machine looks."""
    (tmp_path / "wheels").mkdir()
    (tmp_path / "mirrors.yaml").write_text(
        "git: {https://github.com: https://me:secret@git.example}\npip: {find-links: ./wheels}\n"
    )
    (tmp_path / "ca.pem").write_text("a certificate")
    (tmp_path / "netrc").write_text("machine x login y password z")
    monkeypatch.setenv("SIFWRIGHT_MIRRORS", str(tmp_path / "mirrors.yaml"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("https_proxy", "http://it's:me@proxy.example")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("TMPDIR", "/of/this/node")
    loaded, settings = mirrors.load(), tmp_path / "settings"
    job_settings.write(settings)
    assert {stat.S_IMODE(path.stat().st_mode) for path in settings.iterdir()} == {0o600}
    assert stat.S_IMODE(settings.stat().st_mode) == 0o700
    script = f"set -eu; source {settings}/environment; env -0"
    printed = subprocess.run(
        ["/bin/bash", "-c", script], env={}, capture_output=True, text=True, check=True
    ).stdout
    variables = dict(line.split("=", 1) for line in printed.split("\0") if line)
    assert variables["https_proxy"] == "http://it's:me@proxy.example"
    assert variables["PATH"] == os.environ["PATH"]
    assert not {"SLURM_JOB_ID", "TMPDIR"} & variables.keys()
    assert Path(variables["REQUESTS_CA_BUNDLE"]).read_text() == "a certificate"
    assert Path(variables["NETRC"]).read_text() == "machine x login y password z"
    monkeypatch.setenv("SIFWRIGHT_MIRRORS", variables["SIFWRIGHT_MIRRORS"])
    assert mirrors.load() == loaded
