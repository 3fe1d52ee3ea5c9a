"""The folder of a submitted job: its state, and the settings that only its owner reads."""

import json
import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from sifwright.catalog import mirrors
from sifwright.catalog.model import Catalog
from sifwright.errors import MachineError
from sifwright.launch.submit import job_folder, job_settings, shared_folders
from sifwright.launch.submit.cancel import cancel
from sifwright.launch.submit.graph import Task, build_jobs
from sifwright.launch.submit.job_folder import SubmittedJob
from sifwright.launch.submit.job_script import render_script
from sifwright.launch.submit.jobs_place import of_images
from sifwright.launch.submit.schedulers import SCHEDULERS, JobState
from sifwright.launch.submit.submission import prepare
from sifwright.make_image.resolve_request.secrets import read_secrets


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


@pytest.mark.parametrize(
    ("status", "states"),
    [("6", ["failed", "cancelled", "cancelled"]), ("0", ["done", "lost", "lost"])],
)
def test_jobs_behind_a_job_that_the_scheduler_forgets(
    job: SubmittedJob, monkeypatch: pytest.MonkeyPatch, status: str, states: list[str]
) -> None:
    """Forget ended jobs, as OpenPBS does without job history, its default."""
    monkeypatch.setattr(SCHEDULERS["slurm"], "states", lambda _ids: {}, raising=False)
    jobs = Path(job.folder).parent
    for number in (8, 9):
        behind = replace(job, id=str(number), after=str(number - 1), folder=f"{jobs}/{number}")
        job_folder.make(Path(behind.folder))
        job_folder.write(behind)
    (Path(job.folder) / "status").write_text(status)
    assert [entry.state for entry in job_folder.refresh(jobs)] == states


def test_cancel_writes_off_a_lost_job(job: SubmittedJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SCHEDULERS["slurm"], "states", lambda _ids: {}, raising=False)
    folder = Path(job.folder)
    assert cancel(folder.parent) == []
    assert job_folder.read_all(folder.parent) == [replace(job, state="cancelled")]
    assert not (folder / "settings").exists()


@pytest.mark.parametrize("message", ["Job has finished 7", "Unauthorized Request 7"])
def test_cancel_of_a_job_that_ends_at_once(
    job: SubmittedJob, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    """Take the answer of OpenPBS 23.06.06 for a job behind one that it has just deleted."""
    done = subprocess.CompletedProcess(["scancel"], 35, "", f"scancel: {message}\n")
    monkeypatch.setattr(
        SCHEDULERS["slurm"], "states", lambda _ids: {"7": JobState("queued")}, raising=False
    )
    monkeypatch.setattr("sifwright.system.processes.capture", lambda _words, **_: done)
    folder = Path(job.folder).parent
    if "finished" in message:
        assert [ended.state for ended in cancel(folder)] == ["cancelled"]
    else:
        with pytest.raises(MachineError, match=r"^scancel: Unauthorized Request 7$"):
            cancel(folder)


@pytest.fixture
def script(real: Catalog, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the script of a job that needs a project, the step cache and the current folder."""
    (tmp_path / "start").mkdir()
    monkeypatch.chdir(tmp_path / "start")
    (tmp_path / "defs" / "sites").mkdir(parents=True)
    (tmp_path / "defs" / "sites" / "lumi.yaml").write_text("a site")
    submission = replace(
        prepare([real.sites["lumi"]], "", ["account=x"], of_images(str(tmp_path))),
        folders=(shared_folders.project(tmp_path, "lumi"), shared_folders.step_cache()),
    )
    assert shared_folders.step_cache().path == cache.parent
    task = Task(key="k", name="torch", parent="", image="lumi/x", words=("no-command",))
    (job,) = build_jobs([[task]], {})
    job_settings.write(tmp_path / "settings", {})
    return render_script(submission, job, tmp_path, tmp_path / "log")


@pytest.mark.usefixtures("cache")
def test_each_step_cache_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, again = shared_folders.step_cache(), shared_folders.step_cache()
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "other"))
    other = shared_folders.step_cache()
    assert first == again
    assert first.digest != other.digest


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("defs/sites/lumi.yaml", "project {}"),
        ("cache/steps-1/folder-id", "step cache {}/cache"),
        ("start", "folder {}/start"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("other", [True, False])
def test_a_node_that_sees_other_folders(
    script: str, tmp_path: Path, file: str, named: str, *, other: bool
) -> None:
    """Refuse another folder at the same path, or none."""
    if file:
        (tmp_path / file).rename(tmp_path / "gone")
    if file and other:
        (tmp_path / file).write_text("another")
    environment = os.environ | {"HOSTNAME": "nid007"}
    bash = ["/bin/bash", "-c", script]
    done = subprocess.run(bash, env=environment, capture_output=True, text=True, check=False)
    message = f"sifwright: {named.format(tmp_path)}: node nid007 does not see this folder"
    assert (message in done.stderr) == bool(file), done.stderr
    assert ("No module named" in done.stderr or "no-command" in done.stderr) == (not file)
    assert (tmp_path / "status").read_text() == ("5\n" if file else "2\n")
    assert not (tmp_path / "settings").exists()


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", {"id": 7}, {"keys": []}, {"images": [1]}, {"images": 5}, {"log": None}]
)
def test_a_broken_record_is_left_out(job: SubmittedJob, text: str | dict[str, object]) -> None:
    folder = Path(job.folder)
    assert job_folder.read_all(folder.parent) == [job]
    record = json.loads((folder / "job.json").read_text())
    broken = text if isinstance(text, str) else json.dumps(record | text)
    (folder / "job.json").write_text(broken)
    assert job_folder.read_all(folder.parent) == []


def test_settings_reach_a_job_by_files_of_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put the mirrors file beside its folders, and certificates where only this machine looks."""
    (tmp_path / "wheels").mkdir()
    (tmp_path / "mirrors.yaml").write_text(
        "git: {https://github.com: https://me:secret@git.example}\npip: {find-links: ./wheels}\n"
    )
    (tmp_path / "ca.pem").write_text("a certificate")
    (tmp_path / "netrc").write_text("machine x login y password z")
    monkeypatch.setenv("GIT_SSL_CAINFO", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SIFWRIGHT_MIRRORS", str(tmp_path / "mirrors.yaml"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("https_proxy", "http://it's:me@proxy.example")
    monkeypatch.setenv("PIP_LATIN", "\udcff")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("TMPDIR", "/of/this/node")
    loaded, settings = mirrors.load(), tmp_path / "settings"
    job_settings.write(settings, {"token": b"\xff a secret"})
    (word,) = job_settings.secret_words(settings, ["token"])
    assert read_secrets([word.removeprefix("--secret=")]) == {"token": b"\xff a secret"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in settings.iterdir()} == {0o600}
    assert stat.S_IMODE(settings.stat().st_mode) == 0o700
    script = f"set -eu; source {settings}/environment; env -0"
    command = ["/bin/bash", "-c", script]
    printed = os.fsdecode(subprocess.run(command, env={}, capture_output=True, check=True).stdout)
    variables = dict(line.split("=", 1) for line in printed.split("\0") if line)
    assert variables["https_proxy"] == "http://it's:me@proxy.example"
    assert variables["PIP_LATIN"] == "\udcff"
    assert variables["PATH"] == os.environ["PATH"]
    assert not {"SLURM_JOB_ID", "TMPDIR"} & variables.keys()
    assert Path(variables["REQUESTS_CA_BUNDLE"]).read_text() == "a certificate"
    assert Path(variables["NETRC"]).read_text() == "machine x login y password z"
    assert Path(variables["GIT_SSL_CAINFO"]).parent == settings
    monkeypatch.setenv("SIFWRIGHT_MIRRORS", variables["SIFWRIGHT_MIRRORS"])
    assert mirrors.load() == loaded
