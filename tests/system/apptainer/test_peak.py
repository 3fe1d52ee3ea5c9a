"""The room that a build takes below the temporary folder, measured, and what it said before."""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.conftest import sifwright
from tests.system.apptainer.test_scarcity import needs_root, small_disk
from tests.system.apptainer.toys import Toy, succeeded
from tests.system.apptainer.trials import Site

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.build

BIG = "head -c 60000000 /dev/urandom >/big\n"
CAPABLE = "cp /usr/bin/true /capable; setcap cap_net_raw+ep /capable\n"


@pytest.fixture
def site(tiny: Toy, tmp_path: Path) -> Site:
    """Make a site with a big layer below an edited one; nothing is cached yet."""
    tiny.layer("big", BIG)
    edit(tiny, "echo 1 >/edit\n")
    tiny.image("big", "edit")
    return Site.make(tiny, tmp_path / "site")


def edit(toy: Toy, script: str) -> None:
    # Declare as little as it makes: the forecast takes unknown sizes from here.
    toy.layer("edit", script, header={"disk_mb": 1})


def stated(site: Site) -> int:
    """Return the bytes below the temporary folder that the next build will report."""
    words = [word if word != "build" else "plan" for word in site.command()[3:]]
    done = succeeded(sifwright(*words, env=site.environment))
    return int(json.loads(done.stdout)["forecast"]["needs"]["temporary"])


def measured(site: Site) -> tuple[int, str]:
    """Build; the most that was there at once, and what the build said."""
    peak = 0
    command = site.command()
    with subprocess.Popen(
        command, env=site.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        while process.poll() is None:
            peak = max(peak, sum(sizes(site.folder / "temporary").values()))
            time.sleep(0.01)
        output = process.stdout.read() if process.stdout else ""
    assert process.returncode == 0, output
    return peak, output


def sizes(folder: Path) -> dict[tuple[int, int], int]:
    """Return the size of each file by its inode: hard links count once, as in du(1)."""
    results = {}
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with suppress(OSError):
                status = os.lstat(f"{path}/{name}")
                results[status.st_dev, status.st_ino] = status.st_blocks * 512
    return results


def test_files_with_capabilities_take_what_was_said(site: Site) -> None:
    """Unpack all layers below for a step, and tell why; from scratch a tree is there anyway."""
    site.toy.layer("big", BIG + CAPABLE)
    assert site.build().returncode == 0
    edit(site.toy, "echo 2 >/edit; rm /capable\n")
    before = stated(site)
    peak, message = measured(site)
    assert 60_000_000 < peak <= before
    because = "runs without an overlay, because of capabilities of files of layer 'big'"
    assert message.count(f"layer 'edit' {because}") == 1
    with (site.toy.folder / "defs/layers/base-local/install.sh").open("a") as file:
        file.write("# edited\n")
    before = stated(site)
    peak, message = measured(site)
    assert 60_000_000 < peak <= before
    assert "without an overlay" not in message


def test_a_step_on_an_overlay_takes_little(site: Site) -> None:
    assert site.build().returncode == 0
    edit(site.toy, "echo 2 >/edit\n")
    before = stated(site)
    peak, message = measured(site)
    assert peak <= before < 10_000_000
    assert "without an overlay" not in message


@needs_root
def test_a_step_that_runs_again_needs_room_for_the_tree(site: Site, tmp_path: Path) -> None:
    """Run the step first: only then the overlay's error is known."""
    site.toy.layer("big", BIG.replace("6", "9") + "echo 1 >/one; ln /one /two\n")
    assert site.build().returncode == 0
    edit(site.toy, "echo 2 >>/one\n")
    with small_disk(tmp_path / "small"):
        env = {**site.environment, "APPTAINER_TMPDIR": str(tmp_path / "small")}
        words = site.command()[3:]
        done = sifwright(*words, env=env)
        assert list((tmp_path / "small").iterdir()) == []
    assert done.returncode == 5, done.stdout + done.stderr
    assert "are needed to unpack the layers, " in done.stderr
    assert f"{tmp_path / 'small'}/" in done.stderr
    assert site.build().returncode == 0
