"""The folder that `sifwright install` gets by --prefix, and what is refused there."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.install.native import tree_snapshot
from sifwright.make_image.cache import claims
from tests.stacks import write
from tests.system.native.project import Project, as_ordinary_user
from tests.unit.conftest import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.conftest import Cli


def test_a_link_to_an_installation(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    """Mean the folder that the link leads to: scripts have its path."""
    assert run_cli(*project.words()).code == 0
    link = tmp_path / "link"
    link.symlink_to(project.prefix)
    done = run_cli(*replace(project, prefix=link).words())
    assert f"up to date: {project.prefix}/current" in done.out, done.err
    page = tmp_path / "page.html"
    words = ("--project", project.folder, "report", "--all", "--prefix", link, "--output", page)
    assert f"{project.prefix}: current" in run_cli(*words).out
    assert run_cli("uninstall", link).code == 0
    assert not project.prefix.exists()


@pytest.mark.parametrize("below", ["versions/mine", ".sifwright/mine", "current/mine"])
def test_inside_of_another(project: Project, run_cli: Cli, below: str) -> None:
    assert run_cli(*project.words()).code == 0
    before = sorted(project.prefix.rglob("*"))
    done = run_cli(*replace(project, prefix=project.prefix / below).words())
    message = f"--prefix {project.prefix}/{below}: is inside of the installation {project.prefix}\n"
    assert (done.code, message in done.err) == (2, True), done.err
    assert sorted(project.prefix.rglob("*")) == before


@pytest.mark.parametrize("prefix", ["relative/folder", "/with blank"])
def test_no_full_path(project: Project, run_cli: Cli, prefix: str) -> None:
    done = run_cli(*project.words("--prefix", prefix))
    assert (done.code, f"--prefix {prefix}: must be a full path" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("link", "link is a link to gone, which you cannot reach"),
        ("link/below", "link is a link to gone, which you cannot reach"),
        ("file", "file is no folder"),
        ("file/deep/below", "file is no folder"),
    ],
)
def test_no_folder_can_be_there(
    project: Project, run_cli: Cli, tmp_path: Path, prefix: str, message: str
) -> None:
    (tmp_path / "link").symlink_to("gone")
    (tmp_path / "file").touch()
    path = str(tmp_path / prefix)
    for words in (
        project.words("--prefix", path),
        ("uninstall", path),
        ("report", "--prefix", path),
        ("test", "--prefix", path),
    ):
        done = run_cli(*words)
        assert done.code == 2
        assert done.err.startswith(f"sifwright: --prefix {path}: {tmp_path}/{message}\n    ")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_installation_of_another_user(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    assert run_cli(*project.words()).code == 0
    version = (project.prefix / "current").resolve()
    (version / "last/second").unlink()  # no note that it is installed again
    private = project.prefix / ".sifwright"
    other, owner = "Name a folder of yours by --prefix.", "Let the owner give this command."
    page = (project.prefix, "Name a file of yours by --output.")
    cases = {
        project.words(): (private, other),
        project.words("--prefix", str(tmp_path / "new")): (tmp_path, other),
        ("uninstall", project.prefix): (private, owner),
        ("report", "--prefix", project.prefix): page,
        ("stage", project.prefix / "current"): (version, owner),
    }
    for words, (where, fix) in cases.items():
        done = as_ordinary_user(tmp_path, sys.executable, "-m", "sifwright", *words)
        mode = f"{where.stat().st_mode & 0o7777:04o}"
        message = f"{where}: you may not write there (it belongs to root, mode {mode})"
        assert (done.returncode, done.stderr) == (2, f"sifwright: {message}\n    {fix}\n")
        assert done.stdout == ""


def test_a_copy_of_an_installation(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    assert run_cli(*project.words()).code == 0
    copy = shutil.copytree(project.prefix, tmp_path / "copy", symlinks=True)
    for words in (("uninstall", copy), project.words("--prefix", str(copy))):
        done = run_cli(*words)
        message = f"was moved: it was installed as {project.prefix}"
        assert (done.code, message in done.err) == (2, True)


def test_a_job_in_an_installation_that_was_moved(
    project: Project, run_cli: Cli, tmp_path: Path
) -> None:
    """Refuse it by any path, as check-comm does, unless the old path leads to the new one."""
    assert run_cli(*project.words()).code == 0
    moved = project.prefix.rename(tmp_path / "moved")
    script = tmp_path / "job.sh"
    words = ("jobscript", "--site", "local", "--nodes", "1", "--run-in", "host", "--output", script)
    for path in (moved / "current", *(moved / "versions").iterdir()):
        done = run_cli("--project", CHECKOUT, *words, "--environment", path, "--", "train.py")
        assert f"was moved: it was installed as {project.prefix}" in done.err
        assert (done.code, script.exists()) == (2, False)
    done = run_cli("--project", CHECKOUT, "check-comm", "local", "--environment", path)
    assert (done.code, f"was moved: it was installed as {project.prefix}" in done.err) == (2, True)
    project.prefix.symlink_to(moved)
    done = run_cli("--project", CHECKOUT, *words, "--environment", path, "--", "train.py")
    assert done.code == 0, done.err


def test_a_file_system_without_hard_links(
    project: Project, run_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    done = run_cli(*project.words())
    assert done.code == 5
    assert f"{project.prefix}/.sifwright/claims: it is on a file system without hard" in done.err
    assert done.err.endswith("Choose another --prefix.\n")
    assert not project.prefix.exists()


def test_a_claim_that_meets_the_end_of_another(
    project: Project, run_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refuse it, where the other process removes the folder of claims at that moment."""
    attempt = claims.try_claim

    def late(root: Path, key: str, *, fix: str) -> object:
        (root / "claims").rmdir()
        return attempt(root, key, fix=fix)

    monkeypatch.setattr(claims, "try_claim", late)
    done = run_cli(*project.words())
    message = f"{project.prefix}: another process installs or uninstalls there"
    assert (done.code, message in done.err) == (5, True), done.err


def test_no_registry_is_asked_for_a_base(run_cli: Cli, tmp_path: Path) -> None:
    words = ("install", "local", "base-image", "--prefix", tmp_path / "prefix", "--module", "a/1")
    done = run_cli(*words, "--set", "base-image.from=docker://registry.invalid/some/image")
    assert (done.code, "registry" in done.err) == (4, False)


def test_two_images(project: Project, run_cli: Cli) -> None:
    """Keep both; `current` and a module of the same name lead to the last one."""
    assert run_cli(*project.words()).code == 0
    first = project.current
    image = project.folder / "defs/images/tiny.yaml"
    shutil.copy(image, image.with_name("other.yaml"))
    project.add("more")
    project.image("first", "last", "more")
    words = project.words()
    assert run_cli(*words[:4], "tiny", *words[4:]).code == 0
    assert project.current != first
    assert len(list((project.prefix / "versions").iterdir())) == 2
    done = run_cli(*words[:4], "other", *words[4:])
    assert "installed" in done.out
    assert project.current == first


@pytest.mark.parametrize("meanwhile", ["up to date", "complete", "refused"])
def test_an_unfinished_image_beside_another(project: Project, run_cli: Cli, meanwhile: str) -> None:
    """Keep its finished steps, though another image is installed or lacks room."""
    project.image("first", "more")
    image = project.folder / "defs/images/tiny.yaml"
    image.rename(image.with_name("other.yaml"))
    project.image("first", "last")
    project.add("more", last=f"[[ -e {project.folder}/mended ]]")
    words = project.words()
    other = (*words[:4], "other", *words[4:])
    assert [run_cli(*words).code, run_cli(*other).code] == [0, 6]
    (project.folder / "mended").touch()
    if meanwhile != "up to date":
        project.add("last", last="echo new")
    if meanwhile == "refused":
        header = project.folder / "defs/layers/last/layer.yaml"
        write(header, json.loads(header.read_text()) | {"disk_mb": 10**9})
    done = run_cli(*words)
    assert done.code == (5 if meanwhile == "refused" else 0), done.err
    says = "unfinished: image other for local: its own command finishes or replaces "
    assert f"\n{says}{project.prefix}/versions/" in f"\n{done.out}"
    assert "first: installed before" in run_cli(*other).out


def test_a_try_beside_the_image_as_it_was(project: Project, run_cli: Cli) -> None:
    """Keep its finished steps until another try has room; a line names it each time."""
    assert run_cli(*project.words()).code == 0
    project.add("first", last="false")
    assert run_cli(*project.words()).code == 6
    (version,) = {*(project.prefix / "versions").iterdir()} - {
        (project.prefix / "current").resolve()
    }
    project.add("first")
    done = run_cli(*project.words())
    ends = f"the next new version of the image replaces {version}\n"
    says = f"unfinished: image tiny for local: {ends}"
    assert (done.code, "up to date" in done.out, says in done.out) == (0, True, True), done.out
    project.add("first", last="echo other")
    header = project.folder / "defs/layers/first/layer.yaml"
    small = header.read_text()
    write(header, json.loads(small) | {"disk_mb": 10**9})
    done = run_cli(*project.words())
    assert (done.code, says in done.out, version.exists()) == (5, True, True), done.out
    header.write_text(small)
    done = run_cli(*project.words())
    says = f"removed: {version}, an unfinished version of image tiny for local\n"
    assert (done.code, says in done.out, version.exists()) == (0, True, False), done.out
    assert not (project.prefix / f".sifwright/{version.name}.json").exists()


def test_a_try_whose_folder_is_gone(project: Project, run_cli: Cli) -> None:
    project.add("last", last="false")
    assert run_cli(*project.words()).code == 6
    shutil.rmtree(project.prefix / "versions")
    project.add("last")
    done = run_cli(*project.words())
    assert done.code == 0, done.err
    assert json.loads((project.prefix / "sifwright.json").read_text())["unfinished"] == {}


def test_a_try_of_another_process(
    project: Project, run_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave a try that began after the look at the tries."""
    assert run_cli(*project.words()).code == 0
    record = project.prefix / "sifwright.json"
    version = project.prefix / "versions/0123456789ab"

    def begin(_snapshot: object) -> int:
        version.mkdir(exist_ok=True)
        document = json.loads(record.read_text())
        record.write_text(json.dumps(document | {"unfinished": {version.name: "tiny for local"}}))
        return 0

    monkeypatch.setattr(tree_snapshot, "recorded_bytes", begin)
    project.add("last", last="echo other")
    assert run_cli(*project.words()).code == 0
    assert version.exists()


def test_the_same_value_by_another_word(project: Project, run_cli: Cli) -> None:
    """Be up to date: the plan is the same, though its document has other origins."""
    assert run_cli(*project.words()).code == 0
    version = (project.prefix / "current").resolve().name
    done = run_cli(*project.words("--set", f"host.program={sys.executable}"))
    says = f"up to date: {project.prefix}/current (versions/{version})\n"
    assert (done.code, done.out.startswith(says)) == (0, True), done.out


@pytest.mark.parametrize("name", [".sifwright", ".sifwright/claims"])
@pytest.mark.parametrize("is_installed", [False, True])
def test_a_private_folder_that_is_a_link(
    project: Project, run_cli: Cli, tmp_path: Path, name: str, *, is_installed: bool
) -> None:
    """Refuse it, and remove nothing where it leads."""
    if is_installed:
        assert run_cli(*project.words()).code == 0
    link = project.prefix / name
    shutil.rmtree(link, ignore_errors=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    (victim := tmp_path / "victim/tmp/thesis").mkdir(parents=True)
    (tmp_path / "victim/a.json").touch()
    link.symlink_to(tmp_path / "victim")
    before = sorted(project.prefix.rglob("*"))
    for words in (project.words(), ("uninstall", project.prefix)):
        done = run_cli(*words)
        assert (done.code, f"{link}: is a link to {tmp_path}/victim" in done.err) == (2, True)
    assert sorted(project.prefix.rglob("*")) == before
    assert victim.exists()
    assert (tmp_path / "victim/a.json").exists()


@pytest.mark.parametrize("name", ["a.json", "tmp/thesis", "claims/mine"])
def test_a_private_folder_of_others(project: Project, run_cli: Cli, name: str) -> None:
    """Take one with the files of a run that was killed only."""
    private = project.prefix / ".sifwright"
    for own in ("claims/.0123456789abcdef", "clock", ".sifwright-abc/file"):
        (private / own).parent.mkdir(parents=True, exist_ok=True)
        (private / own).touch()
    (mine := private / name).parent.mkdir(exist_ok=True)
    mine.touch()
    done = run_cli(*project.words())
    message = f"--prefix {project.prefix}: is not empty, and is no folder of 'sifwright install'"
    shown = ".sifwright/tmp" if "tmp" in name else f".sifwright/{name}"
    assert (done.code, done.err.splitlines()) == (
        2,
        [f"sifwright: {message}", f"    Name a new folder, or move away what is there: {shown}."],
    )
    assert mine.exists()
    mine.unlink()
    if mine.parent.name == "tmp":
        mine.parent.rmdir()
    assert run_cli(*project.words()).code == 0


def test_a_folder_in_place_of_current(project: Project, run_cli: Cli) -> None:
    """Refuse it before a step runs: a copy that followed links has one. It can be removed."""
    assert run_cli(*project.words()).code == 0
    current = project.prefix / "current"
    current.unlink()
    current.mkdir()
    project.add("last", last="echo other")
    before = sorted(project.prefix.rglob("*"))
    message = f"{current}: is no link, and 'sifwright install' makes one"
    for words in (project.words(), project.words("--submit=print:slurm")):
        done = run_cli(*words)
        assert (done.code, done.err.startswith(f"sifwright: {message}\n")) == (2, True), done.err
    assert sorted(project.prefix.rglob("*")) == before
    (current / "mine").touch()
    done = run_cli("uninstall", project.prefix)
    assert (done.code, "still there: current/mine" in done.out) == (0, True)
