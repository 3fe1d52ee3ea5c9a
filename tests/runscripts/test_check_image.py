"""`check-image` starts a command only from an image that is the one of its record."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.images.sif.fingerprint import expected_digests
from tests.conftest import run
from tests.unit.two_layers import flip, give_record, two_layers

if TYPE_CHECKING:
    from collections.abc import Sequence

CHECK = Path(__file__).parents[2] / "runscripts" / "check-image"
# No file can grow, as on a full file system.
FULL = 'trap "" XFSZ; ulimit -f 0; exec "$@"'


@pytest.fixture
def sif(tmp_path: Path) -> Path:
    (tmp_path / "tmp").mkdir()
    return two_layers(tmp_path / "x.sif")


def _start(
    sif: Path, expected: str = "", *, starter: Sequence[str] = (), **env: str
) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": str(sif.parent / "tmp"), **env}
    return run([*starter, CHECK, sif, expected, "echo", "started"], env=env)


def _started(done: subprocess.CompletedProcess[str]) -> bool:
    assert done.returncode in {0, 65}, done.stderr
    assert (done.stdout == "started\n") == (done.returncode == 0)
    return done.returncode == 0


@pytest.mark.parametrize("has_record", [True, False])
def test_one_flipped_bit_is_refused_wherever_it_is(sif: Path, *, has_record: bool) -> None:
    expected = "" if has_record else expected_digests(sif)
    if has_record:
        give_record(sif)
    assert _started(_start(sif, expected))
    size = sif.stat().st_size
    for at in (0, 40, 4100, 32_200, 32_768, 40_000, size - 1501, size - 1):
        flip(sif, at)
        done = _start(sif, expected)
        assert not _started(done), at
        assert "is not, byte for byte, the image that was built" in done.stderr
        flip(sif, at)
    with sif.open("ab") as file:
        file.write(b"more")
    assert not _started(_start(sif, expected))


def test_the_answer_is_remembered_for_the_job(sif: Path) -> None:
    expected = expected_digests(sif)
    assert _started(_start(sif, expected, SLURM_JOB_ID="1"))
    (answer, shared) = sorted(
        (sif.parent / "tmp" / f"sifwright-checked-{sif.stat().st_uid}").iterdir()
    )
    answer.write_text("wrong\n")
    shared.write_text("wrong\n")
    assert not _started(_start(sif, expected, SLURM_JOB_ID="1"))
    assert _started(_start(sif, expected, SLURM_JOB_ID="2"))


def test_answers_that_others_can_write_do_not_count(sif: Path) -> None:
    expected = expected_digests(sif)
    assert _started(_start(sif, expected, SLURM_JOB_ID="1"))
    (sif.parent / "tmp").chmod(0o777)
    flip(sif, 5000)
    folder = next((sif.parent / "tmp").iterdir())
    done = _start(sif, expected, SLURM_JOB_ID="1")
    assert not _started(done)
    assert "is not safe from others" in done.stderr
    (sif.parent / "tmp").chmod(0o1777)
    assert "is not safe" not in _start(sif, expected).stderr
    folder.chmod(0o770)
    assert "is not safe" in _start(sif, expected).stderr


def test_eight_ranks_read_it_once(sif: Path) -> None:
    command: list[str | Path] = [CHECK, sif, "", "true"]
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": str(sif.parent / "tmp")}
    ranks = [
        subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) for _ in range(8)
    ]
    results = [rank.communicate()[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * 8
    assert "".join(results).count("is not checked: no record of it is here") == 1


def test_a_killed_rank_holds_up_nobody(sif: Path) -> None:
    expected = expected_digests(sif)
    assert _started(_start(sif, expected, SLURM_JOB_ID="1"))
    folder = next((sif.parent / "tmp").iterdir())
    answer = max(folder.iterdir(), key=lambda path: len(path.name))
    answer.unlink()
    answer.with_name(f"{answer.name}.lock").symlink_to("999999999")
    assert _started(_start(sif, expected, SLURM_JOB_ID="1"))


@pytest.mark.parametrize("is_damaged", [True, False])
def test_a_full_file_system_remembers_nothing(sif: Path, *, is_damaged: bool) -> None:
    give_record(sif)
    if is_damaged:
        flip(sif, 5000)
    done = _start(sif, starter=("bash", "-c", FULL, "bash"))
    assert _started(done) != is_damaged
    assert ("is not, byte for byte" in done.stderr) == is_damaged
    assert "printf" not in done.stderr
    (folder,) = (sif.parent / "tmp").iterdir()
    assert list(folder.iterdir()) == []


def test_without_its_folder_each_rank_reads_the_image(sif: Path) -> None:
    (sif.parent / "tmp" / f"sifwright-checked-{sif.stat().st_uid}").touch(0o600)
    give_record(sif)
    assert _started(_start(sif))
    flip(sif, 5000)
    assert not _started(_start(sif))


def test_it_can_be_left_out(sif: Path) -> None:
    expected = expected_digests(sif)
    flip(sif, 5000)
    assert _started(_start(sif, expected, SIFWRIGHT_CHECK_IMAGE="0"))


def test_the_modules_image_has_the_installations_record(sif: Path) -> None:
    share = sif.parent / "share/sifwright"
    share.mkdir(parents=True)
    give_record(sif)
    sif.with_name("record.json").rename(share / "record.json")
    env = {"CONTAINERROOT": str(sif.parent), "SIFPYTORCH": str(sif)}
    assert _started(_start(sif, **env))
    flip(sif, 33_000)
    assert not _started(_start(sif, **env))


def test_an_image_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    done = _start(tmp_path / "x.sif")
    assert not _started(done)
    assert "cannot be read" in done.stderr
