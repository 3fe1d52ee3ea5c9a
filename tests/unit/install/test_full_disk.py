"""Installations on small file systems that have no bytes, or no inodes, left."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.system.free_space import Room
from sifwright.system.liveness import ProcessIdentity
from sifwright.system.tempdirs import TEMPORARY_FIX
from tests.conftest import run
from tests.system.native.test_kills import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.system.native.project import Project
    from tests.unit.conftest import Cli

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
_INODES = 300
_PAGE = 4096


@pytest.fixture
def project(project: Project, tmp_path: Path) -> Iterator[Project]:
    """Return a project whose prefix is below a small file system."""
    (disk := tmp_path / "disk").mkdir()
    run(["mount", "-t", "tmpfs", "-o", f"size=3m,nr_inodes={_INODES}", "tmpfs", disk])
    yield replace(project, prefix=disk / "made/prefix")
    done = run(["umount", disk])
    assert done.returncode == 0, done.stderr


def use_all_bytes(disk: Path, pages_left: int = 0) -> None:
    with (disk / "filler").open("wb", buffering=0) as file:
        with suppress(OSError):
            while file.write(bytes(_PAGE)):
                pass
        file.truncate(file.tell() - pages_left * _PAGE)


def use_all_inodes(disk: Path, left: int = 0) -> None:
    for number in range(os.statvfs(disk).f_ffree - left):
        (disk / f"filler-{number}").touch()


def is_removed(project: Project, run_cli: Cli) -> bool:
    """Return whether uninstall removes all but the fillers."""
    disk = project.prefix.parents[1]
    done = run_cli("uninstall", project.prefix)
    left = [path for path in disk.iterdir() if not path.name.startswith("filler")]
    return (done.code, left) == (0, [])


def test_uninstall(project: Project, run_cli: Cli) -> None:
    assert run_cli(*project.words()).code == 0
    use_all_bytes(project.prefix.parents[1])
    assert is_removed(project, run_cli)


@pytest.mark.parametrize(
    ("clock", "message"), [("clock", "another process installs"), ("", "No space left")]
)
def test_uninstall_while_another_machine_installs(
    project: Project, run_cli: Cli, clock: str, message: str
) -> None:
    """Remove nothing before that machine is silent; older versions have made no clock."""
    assert run_cli(*project.words()).code == 0
    private = project.prefix / ".sifwright"
    claim = private / "claims/install"
    claim.write_bytes(replace(ProcessIdentity.here(), host="elsewhere").encoded())
    if not clock:
        (private / "clock").unlink()
    use_all_inodes(project.prefix.parents[1])
    before = sorted(project.prefix.rglob("*"))
    done = run_cli("uninstall", project.prefix)
    assert (done.code, sorted(project.prefix.rglob("*"))) == (5, before)
    assert message in done.err
    if clock:
        os.utime(claim, (0, 0))
        assert is_removed(project, run_cli)


def test_tests_of_an_update(
    project: Project, run_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Name the folder that has no room for them."""
    scratch = project.prefix.parents[1]
    project = replace(project, prefix=project.folder.parent / "prefix")
    assert run_cli(*project.words()).code == 0
    project.add("last", test="# changed")
    use_all_bytes(scratch)
    monkeypatch.setenv("APPTAINER_TMPDIR", str(scratch))
    done = run_cli(*project.words())
    start = f"sifwright: {scratch}/sifwright-"
    assert (done.code, done.err.startswith(start)) == (5, True), done.err
    assert done.err.endswith(f"(no bytes are left)\n    {TEMPORARY_FIX}\n")


def test_new_facts_of_the_site(project: Project, run_cli: Cli) -> None:
    """Leave a whole file in place of one that has no room."""
    assert run_cli(*project.words()).code == 0
    activate = project.prefix / "current/bin/activate"
    before = activate.read_bytes()
    site = project.folder / "defs/sites/local.yaml"
    site.write_text(site.read_text().replace('"value": "yes"', f'"value": "{"x" * _PAGE}"'))
    use_all_bytes(project.prefix.parents[1], pages_left=1)
    assert run_cli(*project.words()).code == 5
    assert activate.read_bytes() == before


@pytest.mark.parametrize("words", [("report", "--prefix"), ("stage",)])
def test_a_page_and_an_archive(project: Project, run_cli: Cli, words: tuple[str, ...]) -> None:
    """Name the folder that has no room."""
    assert run_cli(*project.words()).code == 0
    use_all_bytes(project.prefix.parents[1])
    path = project.prefix if len(words) > 1 else project.prefix / "current"
    done = run_cli(*words, path)
    start = f"sifwright: {path.resolve()}: cannot be written: No space left on device"
    assert (done.code, done.err.startswith(start)) == (5, True), done.err


@pytest.mark.parametrize("left", [0, 50])
def test_too_few_inodes(project: Project, run_cli: Cli, left: int) -> None:
    disk = project.prefix.parents[1]
    use_all_inodes(disk, left)
    done = run_cli(*project.words())
    message = f"{project.prefix}: 56 files are needed below it, {left} inodes are free"
    fix = "Free some, or name another --prefix."
    assert (done.code, done.err) == (5, f"sifwright: {message}\n    {fix}\n")
    assert not (disk / "made").exists()


def test_inodes_of_an_earlier_try(project: Project, run_cli: Cli) -> None:
    """Count them as free, as the try is removed before the next one begins."""
    project.add("first", last='touch "$INSTALL_PREFIX/first/"{1..60}')
    project.add("last", last="false")
    assert run_cli(*project.words()).code == 6
    use_all_inodes(project.prefix.parents[1], left=30)
    project.add("first")
    project.add("last")
    done = run_cli(*project.words())
    assert (done.code, "removed: " in done.out) == (0, True), done.err


def test_room_of_an_earlier_try(project: Project, run_cli: Cli) -> None:
    """Say both numbers, and leave the try; a file with another name elsewhere stays."""
    project.add("last", last="false")
    assert run_cli(*project.words()).code == 6
    disk, (version,) = project.prefix.parents[1], (project.prefix / "versions").iterdir()
    (file := version / "file").write_bytes(bytes(_PAGE))
    own = Room.of(version)
    (disk / "link").hardlink_to(file)
    assert Room.of(version) == Room(size=own.size - _PAGE, inodes=own.inodes - 1)
    use_all_inodes(disk, left=2)
    project.add("last")
    done = run_cli(*project.words())
    free = f"0 inodes are free, and {own.inodes - 1} of unfinished versions"
    assert (done.code, free in done.err, version.exists()) == (5, True, True), done.err


def test_a_step_that_uses_all_inodes(project: Project, run_cli: Cli) -> None:
    """Leave something that uninstall removes, where the next step has more files."""
    touch = f'touch "$INSTALL_PREFIX/"{{1..{_INODES}}} || rm "$INSTALL_PREFIX/"{{1,2}}'
    project.add("first", last=f"{touch}  # two for the rest of this step")
    (files := project.folder / "defs/layers/last/files").mkdir()
    for number in range(9):
        (files / f"{number}").touch()
    done = run_cli(*project.words())
    start = f"sifwright: {project.prefix}/.sifwright/tmp: cannot be written: No space left on "
    assert (done.code, done.err.startswith(start)) == (5, True), done.err
    assert done.err.endswith(f"too many files)\n    {TEMPORARY_FIX}\n")
    use_all_inodes(project.prefix.parents[1])
    assert is_removed(project, run_cli)


def test_a_step_that_fills_the_disk_is_mended(project: Project, run_cli: Cli) -> None:
    """Ask for room once the files of the failed step are gone."""
    assert run_cli(*project.words()).code == 0
    project.add("last", last='cp /dev/zero "$INSTALL_PREFIX/big"')
    assert run_cli(*project.words()).code == 6
    project.add("last", last="echo mended")
    done = run_cli(*project.words())
    assert done.code == 0, done.err
    assert len(list((project.prefix / "versions").iterdir())) == 2


def test_a_kill_on_a_full_disk(project: Project, run_cli: Cli) -> None:
    """Remove what its step wrote in the scratch folder; its try stays and is named."""
    assert run_cli(*project.words()).code == 0
    project.add("first", last=f'cp /dev/zero "$INSTALL_PREFIX/big" || :\n{PROGRAM}')
    assert project.install().returncode == -signal.SIGKILL
    use_all_bytes(project.prefix.parents[1])
    assert (project.prefix / ".sifwright/tmp").exists()
    project.add("first")
    done = run_cli(*project.words())
    assert (done.code, "up to date" in done.out) == (0, True), done.err
    assert "unfinished: image tiny for local: the next new version" in done.out
    assert len(list((project.prefix / "versions").iterdir())) == 2
    assert not (project.prefix / ".sifwright/tmp").exists()
