"""Too little room is said before a build starts: where, how much, and what to do."""

from __future__ import annotations

import os
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import MachineError
from sifwright.make_image.check_machine import disk_space, host_checks
from sifwright.make_image.forecast.disk_needs import DiskNeeds
from sifwright.system.free_space import require_free_space

if TYPE_CHECKING:
    from pathlib import Path

GB = 10**9
WANTED = DiskNeeds(temporary=3 * GB, cache=2 * GB, output=GB)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    results = {name: tmp_path / name for name in ("tmp", "cache", "out")}
    results["tmp"].mkdir()
    monkeypatch.delenv("APPTAINER_TMPDIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(results["tmp"]))
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(results["cache"]))
    return results


@pytest.fixture
def disks(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Put each folder on a disk of its own."""
    numbers = {path: number for number, path in enumerate(folders.values())}
    monkeypatch.setattr(disk_space, "_device", lambda folder: numbers[folder.folder])


def _free(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=size))


def test_the_line(folders: dict[str, Path]) -> None:
    message = f"needs 3.0 GB below {folders['tmp']}, 2.0 GB in the cache, 1.0 GB at the output"
    assert disk_space.summary_line(WANTED, folders["out"]) == message
    assert disk_space.summary_line(DiskNeeds(temporary=0, cache=0, output=1), folders["out"]) == (
        "needs 1 MB at the output"
    )
    assert disk_space.summary_line(DiskNeeds(temporary=0, cache=0, output=0), folders["out"]) == ""


def test_another_folder_than_tmpdir_is_named(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", f"{folders['tmp']}/")
    assert not list(host_checks.temporary_notes())
    monkeypatch.setenv("TMPDIR", "/proc")
    (note,) = host_checks.temporary_notes()
    message = f"TMPDIR='/proc': is missing, full or read-only, so {folders['tmp']} is used"
    assert (note.severity, str(note).splitlines()[0]) == ("note", message)
    monkeypatch.setenv("APPTAINER_TMPDIR", str(folders["out"]))
    assert not list(host_checks.temporary_notes())


def test_one_disk_has_to_have_room_for_all(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _free(monkeypatch, 6 * GB)
    assert list(disk_space.problems(WANTED, folders["out"])) == []
    _free(monkeypatch, 6 * GB - 1)
    (problem,) = disk_space.problems(WANTED, folders["out"])
    assert problem.where == str(folders["tmp"])
    assert problem.what == (
        f"6.0 GB are needed (3.0 GB below {folders['tmp']}, 2.0 GB in the cache,"
        " 1.0 GB at the output), 5.9 GB are free"
    )
    assert problem.fix == (
        "Free some (sifwright cache prune --keep-size 50G), or set TMPDIR to another folder,"
        " or set SIFWRIGHT_CACHE to another folder, or choose another output folder with --output."
    )


def test_unknown_needs_are_checked_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _free(monkeypatch, 2 * GB)
    folder = tmp_path / "not" / "there"
    require_free_space(folder, 2 * GB, "for a tree")
    with pytest.raises(MachineError) as caught:
        require_free_space(folder, 2 * GB + 1, "for a tree")
    (problem,) = caught.value.problems
    assert problem.where == str(folder)
    assert problem.what == "2.1 GB are needed for a tree, 2.0 GB are free"
    assert "APPTAINER_TMPDIR" in problem.fix


@pytest.mark.parametrize(("total", "free", "refused"), [(1536, 999, 1), (1536, 1000, 0), (0, 0, 0)])
def test_inodes_are_needed_as_well(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch, total: int, free: int, refused: int
) -> None:
    """Accept 0 of 0 inodes, as btrfs counts none."""
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_files=total, f_favail=free))
    needs = DiskNeeds(temporary=0, cache=0, output=0, temporary_files=1000)
    problems = list(disk_space.problems(needs, folders["out"]))
    message = "1000 files are needed below it, 999 inodes are free"
    fix = "Remove files there, or set TMPDIR to another folder."
    assert [str(problem) for problem in problems] == refused * [
        f"{folders['tmp']}: {message}\n    {fix}"
    ]


@pytest.mark.usefixtures("disks")
def test_disks_of_their_own(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _free(monkeypatch, 2 * GB)
    (problem,) = disk_space.problems(WANTED, folders["out"])
    assert problem.where == str(folders["tmp"])
    _free(monkeypatch, 0)
    problems = list(disk_space.problems(WANTED, folders["out"]))
    assert [item.where for item in problems] == [str(path) for path in folders.values()]
    assert "SIFWRIGHT_CACHE" in problems[1].fix
    assert "--output" not in problems[1].fix


def test_the_engines_own_folder_is_named_by_its_variable(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APPTAINER_TMPDIR", str(folders["out"]))
    _free(monkeypatch, 0)
    (problem,) = disk_space.problems(WANTED, folders["out"])
    assert "set APPTAINER_TMPDIR to another folder" in problem.fix
    assert f"below {folders['out']}" in problem.what
