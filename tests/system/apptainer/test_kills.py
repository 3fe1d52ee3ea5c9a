"""SIGKILL at many moments of a build: no image is lost, and the next build makes the right one."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.images.sif import sif_file
from sifwright.images.sif.fingerprint import sif_fingerprint
from sifwright.images.sif.format import DataType
from sifwright.system import files, ids
from sifwright.system.cache_folder import CLAIMS, LEASES
from tests.system.apptainer.toys import Toy, succeeded
from tests.system.apptainer.trials import LAYERS, Site, Trial, copied, states
from tests.system.apptainer.wholes import whole

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.build

slow = pytest.mark.slow
# Number of kills while it works, and while it publishes; the layout; the first layer that runs
# again.
KILLS = [
    (1, "layered", "work"),
    (2, "flat", "base-local"),
    pytest.param((100, "layered", "work"), marks=slow),
    pytest.param((25, "flat", "base-local"), marks=slow),
]
# Not every moment that is chosen is in time.
ATTEMPTS = 10
# A step whose changes take a while to write and to pack. They are the same bytes each time: -B, as
# bytecode has the time of its source in it.
INSTALL = """mkdir -p /data/inner
for i in 1 2 3; do seq 1 300000 >/data/inner/$i; done
rm -rf /data/inner; mkdir /data/inner
seq 1 200000 >/data/inner/numbers
echo {number} >/data/number
ln /data/number /data/again
cp /usr/bin/true /data/capable
setcap cap_net_raw+ep /data/capable
python3 -BIS -c 'import os; os.setxattr("/data/number", "user.toy", b"{number}")'
find /data -exec touch -hd @1400000000 {{}} +
"""


def fresh(trial: Trial, folder: Path, layer: str) -> Site:
    """Copy the site, and drop the results of a layer and those above."""
    site = copied(trial.site, folder)
    for entry in site.store.entries():
        if LAYERS.index(entry.manifest["layer"]) >= LAYERS.index(layer):
            shutil.rmtree(entry.folder)
    return site


def start(site: Site, layout: str) -> subprocess.Popen[str]:
    words, pipe = site.command("--layout", layout), subprocess.PIPE
    return subprocess.Popen(words, env=site.environment, stdout=pipe, stderr=pipe, text=True)


def build(site: Site, *arguments: str) -> None:
    """Build; again if nothing was left to do, as that reclaims nothing either."""
    done = succeeded(site.build(*arguments))
    assert_of_one_build(site)
    if "publish" not in states(done):
        build(site, *arguments, "--force")


def assert_of_one_build(site: Site) -> None:
    """Check that all published files belong to one build."""
    folder = site.sif.parent
    record = json.loads((folder / "record.json").read_text())
    assert str(site.sif.readlink()) == record["sif"]
    assert sif_fingerprint(site.sif) == record["sif_fingerprint"]
    assert json.loads((folder / "plan.json").read_text()) == record["plan"]
    (own,) = (
        descriptor
        for descriptor in sif_file.read(site.sif).descriptors
        if descriptor.data_type == DataType.DEFINITION
    )
    definition = sif_file.data(site.sif, own)
    assert hashlib.sha256(definition).hexdigest() == record["definition_sha256"]
    recipe = folder / "recipe"
    assert (recipe / "kept" / "plan.json").read_text() == (folder / "plan.json").read_text()
    assert files.sha256(recipe / "toy.def") == record["files"]["recipe/toy.def"]
    assert (recipe / "layers" / "work" / "install.sh").read_bytes() in definition


def assert_nothing_left(site: Site) -> None:
    held = (site.store.root / CLAIMS, site.store.root / LEASES, site.folder / "temporary")
    assert [path for folder in held for path in folder.iterdir()] == []
    # The link, the image of each edit, and what belongs to the last build.
    names = sorted(path.name for path in site.sif.parent.iterdir() if path.suffix != ".sif")
    texts = ["build.log", "pins.json", "plan.json", "record.json"]
    assert names == sorted([*texts, "provenance.json", "recipe", "sbom.cdx.json"])
    assert len([*site.sif.parent.glob("*.sif")]) == 3


def started(process: subprocess.Popen[str], step: str = "") -> None:
    """Read what the build says until the step, or anything, has begun."""
    assert process.stdout
    for line in process.stdout:
        if json.loads(line).get("step") and step in {"", json.loads(line)["step"]}:
            return


def timed(process: subprocess.Popen[str]) -> dict[str, float]:
    """Return the seconds of a build until it publishes, and from there to its end."""
    started(process)
    begun = time.monotonic()
    started(process, "publish")
    publishing = time.monotonic()
    process.communicate(timeout=300)
    assert process.returncode == 0
    return {"": publishing - begun, "publish": time.monotonic() - publishing}


def kill_after(seconds: float, step: str, process: subprocess.Popen[str]) -> bool:
    """Kill it so long after the step has begun; whether that hit what it was to hit."""
    started(process, step)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate(timeout=300)
    # The last line may be cut off.
    lines = (line for line in rest.splitlines(keepends=True) if line.endswith("\n"))
    late = not step and any(json.loads(line).get("step") == "publish" for line in lines)
    return process.returncode == -signal.SIGKILL and not late


@pytest.mark.parametrize("disturbance", KILLS, ids=str)
def test_no_kill_loses_an_image(
    tiny: Toy, tmp_path: Path, disturbance: tuple[int, str, str]
) -> None:
    trial = Trial.of(tiny, tmp_path, INSTALL)
    # The trees that are compared have everything that a kill might lose.
    assert trial.tree["hard links"] == [["./data/again", "./data/number"]]
    assert trial.tree["data/number"][-1] == {"user.toy": b"2".hex()}
    assert "security.capability" in trial.tree["data/capable"][-1]
    _kill_often(trial, tmp_path, *disturbance)


@pytest.mark.parametrize("layer", ["work", pytest.param("base-local", marks=slow)])
def test_no_kill_of_a_build_with_one_id_does(
    tiny: Toy, tmp_path: Path, layer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ids.VARIABLE, "one")
    trial = Trial.of(tiny, tmp_path, INSTALL, ["flat"])
    _kill_often(trial, tmp_path, 1, "flat", layer)


def _kill_often(trial: Trial, folder: Path, wanted: int, layout: str, layer: str) -> None:
    if layer == LAYERS[0]:
        # From scratch, all steps run in one tree, and their results may have its time.
        trial = replace(trial, digests={})
    seconds = timed(start(fresh(trial, folder / "timed", layer), layout))
    chance = random.Random(4711)  # noqa: S311  # moments, not secrets
    counts = {"": 0, "publish": 0}
    for attempt in range(ATTEMPTS * 2 * wanted):
        step = min(counts, key=lambda item: counts[item])
        if counts[step] == wanted:
            break
        site = fresh(trial, folder / f"killed-{attempt}", layer)
        before = files.sha256(site.sif)
        if kill_after(chance.uniform(0, seconds[step]), step, start(site, layout)):
            counts[step] += 1
        else:  # too late: this machine is faster now than when the seconds were measured
            seconds[step] /= 2
        # Before another build, a whole image is there: the old or the new one.
        is_old = files.sha256(site.sif) == before
        assert is_old or whole(site.sif, site.folder / "left", "data") == trial.tree
        build(site, "--layout", layout)
        trial.assert_right(site)
        assert_nothing_left(site)
        assert site.store.verify() == []
        shutil.rmtree(site.folder)
    assert counts == dict.fromkeys(counts, wanted)
