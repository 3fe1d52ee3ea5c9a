"""Whose temporary folders are removed, and whose are not."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.errors import MachineError
from sifwright.system import liveness
from sifwright.system.liveness import ProcessIdentity
from sifwright.system.tempdirs import name_folder_in_errors, remove_stale, workspace
from tests.conftest import run
from tests.system.apptainer.trees import nested
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path


def _renamed(folder: Path, holder: ProcessIdentity) -> Path:
    """Rename the folder as if another process had made it."""
    own, suffix = ProcessIdentity.here(), folder.name.rpartition("-")[2]
    begin = folder.name.partition(f"-{own.boot[:8]}-")[0]
    middle = f"{holder.boot[:8]}-{holder.namespace}-{holder.pid}-{holder.started}"
    return folder.rename(folder.with_name(f"{begin}-{middle}-{suffix}"))


def _silent(folder: Path, seconds: float) -> None:
    now = time.time()
    os.utime(folder, (now - seconds, now - seconds))


def test_a_folder_stays_until_its_build_ends(tmp_path: Path) -> None:
    with workspace(tmp_path / "new") as folder:
        remove_stale(tmp_path / "new")
        (folder / "deep").mkdir()
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "new").iterdir()) == []


def test_the_group_of_the_place_is_not_passed_on(tmp_path: Path) -> None:
    """Drop the group that folders of projects pass on: no user of the image has it."""
    os.chown(tmp_path, -1, max(4711 * (os.geteuid() == 0), *os.getgroups(), os.getegid()))
    tmp_path.chmod(0o2700)
    with workspace(tmp_path) as folder:
        (folder / "new").mkdir()
        statuses = [path.stat() for path in (folder, folder / "new")]
    assert [(status.st_gid, status.st_mode & stat.S_ISGID) for status in statuses] == [
        (os.getegid(), 0)
    ] * 2


# Python's own rmtree leaves folders open when it gives up.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_folders_in_folders_are_gone_however_many(tmp_path: Path) -> None:
    with workspace(tmp_path / "new") as folder:
        done = run([sys.executable, "-c", nested(1100)], cwd=folder)
        assert done.returncode == 0, done.stderr
    assert list((tmp_path / "new").iterdir()) == []


def test_entries_of_others_are_left_alone(tmp_path: Path) -> None:
    """Leave a named pipe, which blocks on opening, and another user's old folder of a build."""
    with workspace(tmp_path) as folder:
        name = replace(ProcessIdentity.here(), pid=4711, started=1)
        left = _renamed(folder, name)
        pipe = left.with_name(f"{left.name}x")
        os.mkfifo(pipe)
        if os.geteuid() == 0:
            os.chown(left, 4711, -1)
        command = (
            "import pathlib, sys; from sifwright.system.tempdirs import remove_stale; "
            "remove_stale(pathlib.Path(sys.argv[1]))"
        )
        assert run([sys.executable, "-c", command, tmp_path], timeout=240).returncode == 0
        assert pipe.is_fifo()
        assert left.exists() == (os.geteuid() == 0)


def test_a_killed_builds_folder_is_removed_at_once(tmp_path: Path) -> None:
    """Remove it also if another process has its id by now."""
    own = ProcessIdentity.here()
    with workspace(tmp_path) as folder:
        later = _renamed(folder, replace(own, started=own.started - 1))
        remove_stale(tmp_path)
        assert not later.exists()


@pytest.mark.parametrize("other", [{"namespace": 1}, {"boot": "00000000-"}])
def test_of_another_container_silence_decides(tmp_path: Path, other: dict[str, Any]) -> None:
    """Ignore its process id, and locks, which mean nothing on shared file systems."""
    with workspace(tmp_path) as folder:
        renamed = _renamed(folder, replace(ProcessIdentity.here(), pid=999_999_999, **other))
        remove_stale(tmp_path)
        assert renamed.exists()
        _silent(renamed, 660)
        remove_stale(tmp_path)
        assert not renamed.exists()


def test_a_working_process_touches_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "BEAT_SECONDS", 0.01)
    with workspace(tmp_path) as folder:
        renamed = _renamed(folder, replace(ProcessIdentity.here(), namespace=1))
        _silent(renamed, 660)
        assert wait_for(lambda: time.time() - renamed.stat().st_mtime < 600)
        remove_stale(tmp_path)
        assert renamed.exists()
        shutil.rmtree(renamed)


def test_other_machines_and_other_files_stay(tmp_path: Path) -> None:
    names = [".sifwright-elsewhere-999999999-abc", "sifwright-notes", "image.sif"]
    for name in names:
        (tmp_path / name).mkdir()
    remove_stale(tmp_path, tmp_path / "missing")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


NO_ROOM = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("error", [NO_ROOM, shutil.Error([("from", "to", str(NO_ROOM))])])
def test_a_lack_of_room_is_said_with_the_folder(tmp_path: Path, error: OSError) -> None:
    with pytest.raises(MachineError) as caught, name_folder_in_errors(tmp_path, "Make room."):
        raise error
    (problem,) = caught.value.problems
    assert (problem.where, problem.fix) == (str(tmp_path), "Make room.")
    assert "No space left on device" in problem.what


def test_other_errors_are_not_a_lack_of_room(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), name_folder_in_errors(tmp_path, "Make room."):
        (tmp_path / "missing").read_text()
