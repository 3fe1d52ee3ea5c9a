"""An error of the system is named with what ran out, and with a remedy that helps."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from sifwright.cli import main
from sifwright.system import os_errors

DISK, QUOTA = "No space left on device", "Disk quota exceeded"


@pytest.mark.parametrize(
    ("number", "left", "text"),
    [
        (errno.ENOSPC, (0, 9), f"{DISK} (no inodes are left: too many files)"),
        (errno.ENOSPC, (9, 0), f"{DISK} (no bytes are left)"),
        (errno.ENOSPC, (9, 9), DISK),
        (errno.ENOSPC, (5, 9), f"{DISK} (5 of 10 inodes are free: too many files)"),
        (errno.ENOSPC, (9, 5), DISK),
        (errno.EDQUOT, (0, 0), QUOTA),
    ],
)
def test_no_inodes_no_bytes_and_a_quota_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, left: tuple[int, int], text: str
) -> None:
    system = SimpleNamespace(f_files=10, f_favail=left[0], f_blocks=10, f_bavail=left[1])
    monkeypatch.setattr(os, "statvfs", lambda _: system)
    error = OSError(number, os.strerror(number))
    assert os_errors.cause(error, tmp_path / "not" / "there") == text


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (OSError(errno.EMFILE, "x"), "Raise the limit of open files (ulimit -n)"),
        (OSError(errno.EDQUOT, "x"), "Remove files of yours there, ask for a larger quota"),
        (OSError(errno.EACCES, "x"), "Free space, mend the permission"),
        (RuntimeError("can't start new thread"), "Raise the limit of processes (ulimit -u)"),
    ],
)
def test_the_remedy_is_the_limits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, fix: str
) -> None:
    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr("sifwright.cli.commands.list.run", fail)
    assert main.main(["list"]) == 5
    assert capsys.readouterr().err.splitlines()[1].strip().startswith(fix)
