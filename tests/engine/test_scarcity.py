"""Too little disk, too few open files, too small files: R4, at every place of a build."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from subprocess import PIPE
from typing import TYPE_CHECKING

import pytest

from sifwright.sif import image
from tests.engine.scarce import (
    PLACES,
    Site,
    copied,
    digest,
    filled,
    prepared,
    small_disk,
    states,
)
from tests.engine.toys import make_toy
from tests.engine.wholes import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.engine.steps import Tree

    Attempt = Callable[[Site], subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.build

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
slow = pytest.mark.slow
LAYOUTS = ("layered", pytest.param("flat", marks=slow))
# Bytes that are left: nothing, a small file, a step's folder, a layer, an image.
SPARE = (0, 40_000, 400_000)
MORE = (4096, 12_000, 100_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000, 12_000_000)
MOMENTS = ("work", "assemble", "publish")
LIMITS = ("--nofile=24", "--fsize=100000", "--fsize=1000000")
MORE_LIMITS = (
    *("--nofile=12", "--nofile=16", "--nofile=20", "--nofile=32", "--nofile=48", "--nofile=64"),
    *("--fsize=0", "--fsize=1000", "--fsize=10000", "--fsize=4000000", "--fsize=9000000"),
)
# What the system says of it, or the check before the start.
CAUSES = re.compile(
    "No space left on device|MB are needed|Too many open files|File too large|File size limit",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A site to begin with, and what an undisturbed build leaves there.

    `digests` are those of the steps' results, `tree` is the image's.
    """

    site: Site
    digests: Mapping[str, str]
    tree: Tree

    def check(self, folder: Path, layout: str, attempt: Attempt) -> None:
        """Whatever comes of the attempt: the image stays whole, and the next build is right."""
        site = copied(self.site, folder)
        before = digest(site.sif)
        done = attempt(site)
        assert "Traceback" not in done.stdout + done.stderr
        assert site.leftovers() == []
        if done.returncode != 0:
            assert done.returncode in {5, 6, 7}, done.stderr
            assert CAUSES.search(done.stderr), done.stderr
            assert digest(site.sif) == before
            _go_on(site, layout)
        self._assert_right(site, layout)

    def _assert_right(self, site: Site, layout: str) -> None:
        assert site.digests() == self.digests
        assert site.store.verify() == []
        assert site.leftovers() == []
        record = json.loads((site.sif.parent / "record.json").read_text())
        assert digest(site.sif) == record["sif_sha256"]
        if layout == "layered":
            parts = [image.digest(site.sif, one) for one in image.partitions(site.sif)]
            assert parts[:-1] == [self.digests[name] for name in ("base-local", "first", "work")]
        else:
            assert whole(site.sif, site.folder / "tree", "data") == self.tree


def _go_on(site: Site, layout: str) -> None:
    """Build again; what was finished is not run again."""
    cached = site.digests().keys()
    again = site.build("--layout", layout)
    assert again.returncode == 0, again.stdout + again.stderr
    assert {states(again)[name] for name in cached} == {"cached"}


@pytest.fixture(scope="module")
def trial(tiny_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    folder = tmp_path_factory.mktemp("scarce")
    site = prepared(make_toy(folder / "project", tiny_base), folder / "site")
    other = copied(site, folder / "undisturbed")
    assert other.build("--layout", "flat").returncode == 0
    tree = whole(other.sif, folder / "tree", "data")
    return Trial(site=site, digests=other.digests(), tree=tree)


@needs_root
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("spare", [*SPARE, *(pytest.param(one, marks=slow) for one in MORE)])
@pytest.mark.parametrize("place", PLACES)
def test_a_disk_that_is_full(
    trial: Trial, tmp_path: Path, place: str, spare: int, layout: str
) -> None:
    def attempt(site: Site) -> subprocess.CompletedProcess[str]:
        with filled(site.folder / place, spare):
            return site.build("--layout", layout)

    with small_disk(tmp_path / place):
        trial.check(tmp_path, layout, attempt)


@needs_root
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("place", PLACES)
def test_a_disk_that_somebody_fills(
    trial: Trial, tmp_path: Path, place: str, moment: str, layout: str
) -> None:
    """While we build: no check before the start can help."""

    def attempt(site: Site) -> subprocess.CompletedProcess[str]:
        return filled_when(site, place, moment, layout)

    with small_disk(tmp_path / place):
        trial.check(tmp_path, layout, attempt)


def filled_when(
    site: Site, place: str, moment: str, layout: str
) -> subprocess.CompletedProcess[str]:
    """Fill the disk up when a part of the build begins."""
    command = site.command("--layout", layout)
    with subprocess.Popen(
        command, env=site.environment, stdout=PIPE, stderr=PIPE, text=True
    ) as process:
        assert process.stdout
        lines = []
        for line in process.stdout:
            lines.append(line)
            if json.loads(line).items() >= {"event": "started", "step": moment}.items():
                break
        with filled(site.folder / place, 0):
            out, errors = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, "".join(lines) + out, errors)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "limit", [*LIMITS, *(pytest.param(one, marks=slow) for one in MORE_LIMITS)]
)
def test_limits_of_the_process(trial: Trial, tmp_path: Path, limit: str, layout: str) -> None:
    def attempt(site: Site) -> subprocess.CompletedProcess[str]:
        return site.build("--layout", layout, limit=["prlimit", limit])

    trial.check(tmp_path, layout, attempt)
