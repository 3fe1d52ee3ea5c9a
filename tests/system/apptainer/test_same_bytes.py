"""Two builds of the same inputs are the same SIF, byte for byte, as `verify --rebuild` reports."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.conftest import sifwright
from tests.system.apptainer.toys import make_toy, succeeded

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.apptainer.toys import Toy

# MAX_JOBS stands for the day: a setting of the machine that differs between the two builds.
INSTALL = """
mkdir -p /etc /var/cache/ldconfig /opt/made/deep
echo "root:*:$((20000 + MAX_JOBS)):0:99999:7:::" >/etc/shadow
echo "$RANDOM" >/var/cache/ldconfig/aux-cache
echo hello >/opt/made/deep/file
ln /opt/made/deep/file /opt/made/name
ln -s deep/file /opt/made/link; mkfifo /opt/made/fifo
touch -d @$((1400000000 + MAX_JOBS)) /opt/made/deep/file
"""
LATER = """
echo more >>/opt/made/deep/file
touch /opt/made/gone && rm /opt/made/gone /opt/made/link
chmod 700 /opt/made/deep
"""


def _toy(folder: Path, base: Path) -> Toy:
    toy = make_toy(folder, base)
    toy.layer("first", INSTALL)
    toy.layer("second", LATER)
    toy.image("first", "second")
    return toy


def _build(toy: Toy, layout: str, jobs: str, cores: set[int], umask: int) -> bytes:
    def set_up() -> None:
        os.sched_setaffinity(0, cores)
        os.umask(umask)

    cache = str(toy.folder / "cache")
    env = {**os.environ, "SIFWRIGHT_CACHE": cache, "MAX_JOBS": jobs, "TZ": f"UTC-{jobs[0]}"}
    succeeded(toy.build("--layout", layout, env=env, preexec_fn=set_up))
    return toy.sif.read_bytes()


@pytest.mark.parametrize(("layout", "umask"), [("layered", 0o077), ("flat", 0o007)])
def test_another_day_zone_umask_folder_and_number_of_cores(
    tiny_base: Path, tmp_path: Path, layout: str, umask: int
) -> None:
    cores = os.sched_getaffinity(0)
    first = _build(_toy(tmp_path / "a", tiny_base), layout, "500", cores, 0o022)
    toy = _toy(tmp_path / "some where/else", tiny_base)
    assert _build(toy, layout, "600", {min(cores)}, umask) == first


def test_a_rebuild_names_what_differs(tiny: Toy) -> None:
    tiny.layer("stamped", "date +%s.%N >/stamp; echo same >/same\n")
    tiny.image("stamped")
    assert tiny.build().returncode == 0
    done = sifwright("--project", str(tiny.folder), "verify", str(tiny.sif), "--rebuild")
    assert done.returncode == 1, done.stdout + done.stderr
    *lines, layer, stamp = done.stdout.splitlines()
    assert "rebuilt:   NO, another build gives other bytes" in lines
    assert layer == "    layer rootfs: 1 paths differ"
    assert stamp.startswith("        /stamp: date: ")


def test_a_rebuild_from_the_step_cache_and_one_from_nothing(tiny: Toy) -> None:
    """Compare a cached first layer (a squashfs below the second) with a tree of both."""
    tiny.layer("first", INSTALL.replace("MAX_JOBS", "500"))
    tiny.image("first")
    assert tiny.build().returncode == 0
    tiny.layer("second", LATER)
    tiny.image("first", "second")
    assert tiny.build().returncode == 0
    done = succeeded(sifwright("--project", str(tiny.folder), "verify", str(tiny.sif), "--rebuild"))
    assert done.stdout.splitlines()[-1] == "rebuilt:   ok, another build gives the same bytes"
