"""`sifwright uninstall` removes what was installed, and nothing else."""

from __future__ import annotations

import json
import py_compile
import shutil
import signal
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.cli.options import submit_jobs
from sifwright.install.native import uninstall
from sifwright.install.native.install_steps import HostSteps
from sifwright.launch.submit import job_folder
from tests.conftest import sifwright
from tests.system.native.project import MODULE
from tests.system.native.test_kills import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.system.native.project import Project
    from tests.unit.conftest import Cli


@pytest.fixture
def project(project: Project, tmp_path: Path) -> Project:
    """Return a project whose prefix has folders above it that are not there yet."""
    return replace(project, prefix=tmp_path / "made/deep/prefix")


def install(project: Project, run_cli: Cli) -> None:
    done = run_cli(*project.words())
    assert done.code == 0, done.err


def listing(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("of the user\n")
    return path


def _stop(_folder: object) -> None:
    raise KeyboardInterrupt


def test_folders_that_were_there_stay(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    project.prefix.mkdir(parents=True)
    before = listing(tmp_path)
    install(project, run_cli)
    assert run_cli("uninstall", project.prefix).code == 0
    assert listing(tmp_path) == before


def test_files_of_others_stay_and_are_named(project: Project, run_cli: Cli) -> None:
    install(project, run_cli)
    version = (project.prefix / "current").resolve()
    inside = version.relative_to(project.prefix)
    own = "modulefiles/other/1", "modulefiles/tiny/mine", "easyconfigs/mine.eb", "versions/mine"
    others = [*own, "notes", f"{inside}/last/mine", f"{inside}/mine/deep/file"]
    for name in others:
        write(project.prefix / name)
    (project.prefix / "empty").mkdir()
    # Another version comes, and leaves them alone.
    project.add("last", last="echo other")
    install(project, run_cli)
    done = run_cli("uninstall", project.prefix)
    assert done.code == 0, done.err
    output = done.out.partition("still there: ")[2].splitlines()[0].split(", ")
    assert output == [
        *("easyconfigs/mine.eb", "empty", "modulefiles/other", "modulefiles/tiny/mine", "notes"),
        *(f"{inside}/last/mine", f"{inside}/mine", "versions/mine"),
    ]
    assert sorted(
        str(path.relative_to(project.prefix))
        for path in project.prefix.rglob("*")
        if not path.is_dir()
    ) == sorted(others)


def test_many_names(project: Project, run_cli: Cli) -> None:
    install(project, run_cli)
    for number in range(12):
        write(project.prefix / f"file-{number:02}")
    done = run_cli("uninstall", project.prefix)
    assert "file-09 and 2 more" in done.out


def test_installed_again_beside_files_of_others(project: Project, run_cli: Cli) -> None:
    """Ask for an empty folder: the same version would replace a folder with others' files."""
    install(project, run_cli)
    mine = write((project.prefix / "current").resolve() / "mine")
    done = run_cli("uninstall", project.prefix)
    assert done.out.endswith("Move these away before you install there again.\n")
    done = run_cli(*project.words())
    message = f"--prefix {project.prefix}: is not empty, and is no folder of 'sifwright install'"
    fix = "Name a new folder, or move away what is there: versions."
    assert (done.code, done.err) == (2, f"sifwright: {message}\n    {fix}\n")
    assert mine.exists()
    (project.prefix / "versions").rename(project.prefix.with_name("saved"))
    install(project, run_cli)


def test_a_killed_step_whose_record_is_gone(
    project: Project, run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Remove the files that its step has left in the user's temporary folder."""
    before = listing(tmp_path)
    monkeypatch.setenv("APPTAINER_TMPDIR", str(tmp_path / "disk"))
    project.add("last", last=PROGRAM)
    assert project.install().returncode == -signal.SIGKILL
    shutil.rmtree(project.prefix.parents[1])
    (left,) = (tmp_path / "disk").iterdir()
    project.add("last")
    install(project, run_cli)
    assert not left.exists()
    (tmp_path / "disk").rmdir()
    run_cli("uninstall", project.prefix)
    assert listing(tmp_path) == before


def test_an_update_whose_tests_fail(project: Project, run_cli: Cli) -> None:
    """Keep every file of the version in use; a later update has its new test."""
    install(project, run_cli)
    before = contents(version := (project.prefix / "current").resolve())
    test = project.folder / "defs/layers/last/test.sh"
    test.write_text("#!/bin/bash\nset -euo pipefail\nfalse\n")
    site = project.folder / "defs/sites/local.yaml"
    site.write_text(site.read_text().replace("SITE_WIDE", "OTHER_NAME"))
    done = run_cli(*project.words())
    assert (done.code, "layer 'last', test.sh:3: false" in done.err) == (7, True), done.err
    assert contents(version) == before
    test.write_text(new := "#!/bin/bash\nset -euo pipefail\n")
    install(project, run_cli)
    assert (version / "sifwright/tests/last/test.sh").read_text() == new


def test_a_new_test_that_a_kill_kept_out(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    """Be up to date again once the test is taken back, and own its folder."""
    test = project.folder / "defs/layers/first/test.sh"
    content = test.read_text()
    test.unlink()
    before = listing(tmp_path)
    install(project, run_cli)
    test.write_text(content)

    def stop(steps: HostSteps, _results: object) -> None:
        (steps.folder / "sifwright/tests/first").mkdir()
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HostSteps, "finish", stop)
        assert run_cli(*project.words()).code == 130
    test.unlink()
    for says in ("installed: ", "up to date: "):
        assert says in run_cli(*project.words()).out
    assert run_cli("uninstall", project.prefix).code == 0
    assert listing(tmp_path) == before


def test_a_test_that_is_gone(project: Project, run_cli: Cli) -> None:
    """Drop it from the version in use; leave others' files beside it, and those of steps."""
    folder = "$INSTALL_PREFIX/last/sifwright/tests/x"
    project.add("last", last=f'mkdir -p "{folder}"; touch "{folder}/test.sh"')
    install(project, run_cli)
    tests = (project.prefix / "current").resolve() / "sifwright/tests"
    mine = {write(tests / "first/mine"), write(tests / "mine/test.sh")}
    before = set(tests.rglob("*"))
    for name in ("first", "last"):
        (project.folder / f"defs/layers/{name}/test.sh").unlink()
    for says in ("installed: ", "up to date: "):
        assert says in run_cli(*project.words()).out
    gone = before - set(tests.rglob("*"))
    assert gone == {tests / "last", *(tests / f"{name}/test.sh" for name in ("first", "last"))}
    done = run_cli("test", "--prefix", project.prefix)
    assert (done.code, "test first" in done.out, "test last" in done.out) == (0, False, False)
    assert run_cli("uninstall", project.prefix).code == 0
    assert {path for path in tests.rglob("*") if path.is_file()} == mine


def test_a_complete_version_named_as_unfinished(project: Project, run_cli: Cli) -> None:
    """Keep others' files in it."""
    install(project, run_cli)
    version = (project.prefix / "current").resolve()
    record = json.loads((file := project.prefix / "sifwright.json").read_text())
    file.write_text(json.dumps(record | {"unfinished": {version.name: "tiny for local"}}))
    mine = write(version / "mine")
    done = run_cli("uninstall", project.prefix)
    assert (done.code, mine.exists(), f"{version.name}/mine" in done.out) == (0, True, True)


@pytest.mark.parametrize("state", ["submitted", "killed", "installed"])
def test_the_folders_of_jobs_go_as_well(
    project: Project, run_cli: Cli, tmp_path: Path, state: str
) -> None:
    before = listing(tmp_path)
    assert run_cli(*project.words("--submit=print:slurm")).code == 0
    assert (project.prefix.parent / "prefix.jobs").is_dir()
    if state == "killed":
        (project.prefix / ".sifwright/claims").mkdir(parents=True)
    elif state == "installed":
        install(project, run_cli)
    done = run_cli("uninstall", project.prefix)
    assert (done.code, listing(tmp_path)) == (0, before), done.err


def test_a_folder_of_jobs_that_was_there(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    """Leave it, and all that is not of a job that installs."""
    jobs = project.prefix.with_name("prefix.jobs")
    for name in ("mine/job.sh", "install-mine/job.sh", "install-deadbeef/job.sh", "mine.job.log"):
        write(jobs / name)
    before = listing(tmp_path)
    assert run_cli(*project.words("--submit=print:slurm")).code == 0
    assert listing(tmp_path) != before
    install(project, run_cli)
    done = run_cli("uninstall", project.prefix)
    assert (done.code, listing(tmp_path)) == (0, before), done.err


def test_an_empty_folder_of_jobs_stays(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    project.prefix.with_name("prefix.jobs").mkdir(parents=True)
    before = listing(tmp_path)
    assert run_cli(*project.words("--submit=print:slurm")).code == 0
    assert run_cli("uninstall", project.prefix).code == 0
    assert listing(tmp_path) == before


def test_the_note_of_a_submission_comes_first(
    project: Project, run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let a kill leave no job without it; without a job there is no note."""
    jobs, before = project.prefix.with_name("prefix.jobs"), listing(tmp_path)
    noted = []

    def submit(*_arguments: object) -> None:
        noted.append(job_folder.is_noted(jobs))

    monkeypatch.setattr(submit_jobs, "submit_tasks", submit)
    assert run_cli(*project.words("--submit=print:slurm")).code == 0
    assert (noted, listing(tmp_path)) == ([True], before)


def test_jobs_of_others_beside_an_installation(
    project: Project, run_cli: Cli, tmp_path: Path
) -> None:
    """Leave a folder of that name that no --submit has used."""
    write(project.prefix.with_name("prefix.jobs") / "install-01234567/job.sh")
    before = listing(tmp_path)
    assert run_cli("uninstall", project.prefix).code == 2
    install(project, run_cli)
    assert run_cli("uninstall", project.prefix).code == 0
    assert listing(tmp_path) == before


def test_bytecode_goes_with_its_source(project: Project, run_cli: Cli) -> None:
    """Remove bytecode that Python writes at run time, but not that of others' sources."""
    project.add("last", last='echo >"$INSTALL_PREFIX/last/ours.py"')
    install(project, run_cli)
    folder = (project.prefix / "current").resolve() / "last"
    (folder / "foreign.py").touch()
    for name in ("ours.py", "foreign.py"):
        py_compile.compile(str(folder / name), doraise=True)
    run_cli("uninstall", project.prefix)
    left = {path.name.partition(".")[0] for path in folder.rglob("*") if path.is_file()}
    assert left == {"foreign"}


def test_the_archive_of_jobs_goes_as_well(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    before = listing(tmp_path)
    install(project, run_cli)
    done = run_cli("stage", project.prefix / "current")
    assert done.code == 0, done.err
    done = run_cli("uninstall", project.prefix)
    assert (done.code, listing(tmp_path)) == (0, before), done.out


def test_modules_of_earlier_names(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    before = listing(tmp_path)
    install(project, run_cli)
    done = run_cli(*project.words("--module", "another/2"))
    assert done.code == 0, done.err
    assert (project.prefix / f"modulefiles/{MODULE}").exists()
    run_cli("uninstall", project.prefix)
    assert listing(tmp_path) == before


def test_an_unfinished_installation(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    before = listing(tmp_path)
    project.add("last", last="false")
    assert run_cli(*project.words()).code == 6
    assert list((project.prefix / "versions").iterdir())
    assert run_cli("uninstall", project.prefix).code == 0
    project.add("last")
    assert listing(tmp_path) == before


def test_files_of_a_claim_that_was_killed(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    before = listing(tmp_path)
    install(project, run_cli)
    (project.prefix / ".sifwright/claims/.0123456789abcdef").touch()
    done = run_cli("uninstall", project.prefix)
    assert (done.code, listing(tmp_path)) == (0, before), done.err


def test_stopped_and_repeated(
    project: Project, run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Remove the rest after a stop in the next run, and no file of others."""
    before = listing(tmp_path)
    install(project, run_cli)
    mine = write((project.prefix / "current").resolve() / "mine")
    with monkeypatch.context() as patched:
        patched.setattr(uninstall, "shutil", SimpleNamespace(rmtree=_stop))
        assert run_cli("uninstall", project.prefix).code == 130
    assert run_cli("uninstall", project.prefix).code == 0
    assert mine.exists()
    mine.unlink()
    mine.parent.rmdir()
    mine.parents[1].rmdir()
    for folder in (project.prefix, *project.prefix.parents[:2]):
        folder.rmdir()
    assert listing(tmp_path) == before


def run_within(
    function: str, command: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run a command once, when `uninstall` is about to call the function."""
    before = getattr(uninstall, function)

    def call(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(uninstall, function, before)
        command()
        return before(*arguments, **options)

    monkeypatch.setattr(uninstall, function, call)


@pytest.mark.parametrize("function", ["write_record", "remove", "_empty"])
def test_other_commands_are_refused_until_its_end(
    project: Project, run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    before = listing(tmp_path)
    install(project, run_cli)
    others = []

    def run_others() -> None:
        others.append(project.install())
        others.append(sifwright("uninstall", project.prefix))

    run_within(function, run_others, monkeypatch)
    done = run_cli("uninstall", project.prefix)
    assert (done.code, listing(tmp_path)) == (0, before), done.err
    message = f"sifwright: {project.prefix}: another process installs or uninstalls there\n"
    assert [(x.returncode, x.stderr.startswith(message)) for x in others] == [(5, True)] * 2


def test_one_that_comes_after_another(
    project: Project, run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read the record again, once the other one has ended, and leave no folder."""
    before = listing(tmp_path)
    install(project, run_cli)
    run_within("claimed", lambda: sifwright("uninstall", project.prefix), monkeypatch)
    done = run_cli("uninstall", project.prefix)
    assert (done.code, listing(tmp_path)) == (2, before), done.err
    assert f"{project.prefix}: is no folder of 'sifwright install'" in done.err
