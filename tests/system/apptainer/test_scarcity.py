"""Too little disk, too few open files, too small files: R4, at every place of a build."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from contextlib import contextmanager, suppress
from subprocess import PIPE
from typing import TYPE_CHECKING

import pytest

from sifwright.system import files
from tests.conftest import run
from tests.system.apptainer.toys import make_toy, succeeded
from tests.system.apptainer.trials import PLACES, Site, Trial, copied, states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Attempt = Callable[[Site], subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.build

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
slow = pytest.mark.slow
LAYOUTS = ("layered", pytest.param("flat", marks=slow))
# Bytes that are left: nothing, a small file, a step's folder, a layer, an image.
SPARE = (40_000,)
MORE = (0, 4096, 12_000, 400_000, 100_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000, 12_000_000)
# More than a build of the toy takes, in bytes.
DISK = 100_000_000
MOMENTS = ("work", "assemble", "publish")
LIMITS = ("--nofile=24", "--fsize=100000", "--fsize=1000000")
MORE_LIMITS = (
    *("--nofile=16", "--nofile=20", "--nofile=32", "--nofile=48", "--nofile=64"),
    *("--fsize=0", "--fsize=1000", "--fsize=10000", "--fsize=4000000", "--fsize=9000000"),
)
# Messages of the system, or of the check before the start.
CAUSES = re.compile(
    "No space left on device|MB are needed|a build needs|Too many open files|File too large"
    "|File size limit",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def trial(tiny_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    folder = tmp_path_factory.mktemp("scarce")
    return Trial.of(make_toy(folder / "project", tiny_base), folder)


def check(trial: Trial, folder: Path, layout: str, attempt: Attempt) -> None:
    """Check after any attempt: the image stays whole, and the next build is right."""
    site = copied(trial.site, folder)
    before = files.sha256(site.sif)
    done = attempt(site)
    assert "Traceback" not in done.stdout + done.stderr
    assert site.leftovers() == []
    if done.returncode != 0:
        assert done.returncode in {5, 6, 7}, done.stderr
        assert CAUSES.search(done.stderr), done.stderr
        assert files.sha256(site.sif) == before
        # Finished steps are cached.
        cached = site.digests().keys()
        again = succeeded(site.build("--layout", layout))
        assert {states(again)[name] for name in cached} == {"cached"}
    assert site.store.verify() == []
    trial.assert_right(site)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a small file system of its own; only root can."""
    folder.mkdir(parents=True)
    succeeded(run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder]))
    try:
        yield
    finally:
        run(["umount", "--lazy", folder])


@contextmanager
def filled(folder: Path, spare: int) -> Iterator[None]:
    """Leave that many bytes of the disk."""
    filler = folder / "filler"
    with filler.open("wb") as file:
        while (free := shutil.disk_usage(folder).free - spare) > 0:
            # Less may be free by now, where a build writes.
            with suppress(OSError):
                os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), free)
    try:
        yield
    finally:
        filler.unlink()


@needs_root
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("spare", [*SPARE, *(pytest.param(case, marks=slow) for case in MORE)])
@pytest.mark.parametrize("path", PLACES)
def test_a_disk_that_is_full(
    trial: Trial, tmp_path: Path, path: str, spare: int, layout: str
) -> None:
    def attempt(site: Site) -> subprocess.CompletedProcess[str]:
        with filled(site.folder / path, spare):
            return site.build("--layout", layout)

    with small_disk(tmp_path / path):
        check(trial, tmp_path, layout, attempt)


@needs_root
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("path", PLACES)
def test_a_disk_that_somebody_fills(
    trial: Trial, tmp_path: Path, path: str, moment: str, layout: str
) -> None:
    """Fill it when a part of the build begins: no check before the start can help."""

    def attempt(site: Site) -> subprocess.CompletedProcess[str]:
        words = site.command("--layout", layout)
        lines: list[str] = []
        with subprocess.Popen(
            words, env=site.environment, stdout=PIPE, stderr=PIPE, text=True
        ) as process:
            assert process.stdout
            for line in process.stdout:
                lines.append(line)
                if json.loads(line).items() >= {"event": "started", "step": moment}.items():
                    break
            with filled(site.folder / path, 0):
                out, errors = process.communicate(timeout=300)
        return subprocess.CompletedProcess(words, process.returncode, "".join(lines) + out, errors)

    with small_disk(tmp_path / path):
        check(trial, tmp_path, layout, attempt)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "limit", [*LIMITS, *(pytest.param(item, marks=slow) for item in MORE_LIMITS)]
)
def test_limits_of_the_process(trial: Trial, tmp_path: Path, limit: str, layout: str) -> None:
    def attempt(site: Site) -> subprocess.CompletedProcess[str]:
        return site.build("--layout", layout, limit=["prlimit", limit])

    check(trial, tmp_path, layout, attempt)
