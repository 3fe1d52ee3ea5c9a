"""Whose temporary folders are removed, and whose are not."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import MachineError
from sifwright.workspace import reclaim, workspace, writing

if TYPE_CHECKING:
    from pathlib import Path


def _gone_process() -> int:
    """The id of a process that has ended and been waited for."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def _of_process(folder: Path, pid: int) -> Path:
    """Name the folder as if the process had made it."""
    return folder.rename(folder.with_name(folder.name.replace(f"-{os.getpid()}-", f"-{pid}-")))


def test_a_folder_is_gone_afterwards(tmp_path: Path) -> None:
    with workspace(tmp_path / "new") as folder:
        (folder / "deep").mkdir()
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "new").iterdir()) == []


def test_a_running_builds_folder_stays(tmp_path: Path) -> None:
    with workspace(tmp_path) as folder:
        reclaim(tmp_path)
        assert folder.exists()


def test_a_build_in_another_pid_namespace_keeps_its_folder(tmp_path: Path) -> None:
    """Its process id means nothing here, its lock does."""
    with workspace(tmp_path) as folder:
        renamed = _of_process(folder, _gone_process())
        reclaim(tmp_path)
        assert renamed.exists()
    reclaim(tmp_path)
    assert not renamed.exists()


def test_other_machines_and_other_files_stay(tmp_path: Path) -> None:
    names = [".sifwright-elsewhere-999999999-abc", "sifwright-notes", "image.sif"]
    for name in names:
        (tmp_path / name).mkdir()
    reclaim(tmp_path, tmp_path / "missing")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


NO_ROOM = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("error", [NO_ROOM, shutil.Error([("from", "to", str(NO_ROOM))])])
def test_a_lack_of_room_is_said_with_the_folder(tmp_path: Path, error: OSError) -> None:
    with pytest.raises(MachineError) as caught, writing(tmp_path, "Make room."):
        raise error
    (problem,) = caught.value.problems
    assert (problem.where, problem.fix) == (str(tmp_path), "Make room.")
    assert "No space left on device" in problem.what


def test_other_errors_are_not_a_lack_of_room(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), writing(tmp_path, "Make room."):
        (tmp_path / "missing").read_text()
