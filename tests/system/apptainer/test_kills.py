"""SIGKILL at many moments of a build: no image is lost, and the next build makes the right one."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.images.sif import sif_file
from sifwright.images.sif.fingerprint import sif_fingerprint
from sifwright.images.sif.format import DataType
from sifwright.system import files, ids
from sifwright.system.cache_folder import CLAIMS, LEASES
from tests.system.apptainer.trials import LAYERS, PLACES, Site, states
from tests.system.apptainer.wholes import whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.system.apptainer.steps import Tree
    from tests.system.apptainer.toys import Toy

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
EDITS = (1, 2)
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


@dataclass(frozen=True, kw_only=True)
class Known:
    """The results of an undisturbed build of an edit: its steps' results, and the image's tree."""

    digests: dict[str, str]
    tree: Tree


@dataclass(frozen=True, kw_only=True)
class Killed:
    """A site whose builds are killed; `layer` is the first that runs again, `known` by edit."""

    site: Site
    engine: str
    layout: str
    layer: str
    known: dict[int, Known] = field(default_factory=dict)

    def edit(self, number: int) -> None:
        """Change the text of a layer, and drop the results of it and those above."""
        self.site.toy.layer("work", INSTALL.format(number=number))
        again = LAYERS[LAYERS.index(self.layer) :]
        for entry in self.site.store.entries():
            if entry.manifest["layer"] in again:
                shutil.rmtree(entry.folder)

    def build(self, *arguments: str) -> None:
        """Build the edit; again if nothing was left to do, as that reclaims nothing either."""
        done = self.site.build("--layout", self.layout, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        assert_of_one_build(self.site)
        if "publish" not in states(done):
            self.build("--force")

    def start(self) -> subprocess.Popen[str]:
        words = self.site.command("--layout", self.layout)
        env, pipe = self.site.environment, subprocess.PIPE
        return subprocess.Popen(words, env=env, stdout=pipe, stderr=pipe, text=True)

    def tree(self) -> Tree:
        with tempfile.TemporaryDirectory(dir=self.site.folder) as folder:
            return whole(self.site.sif, Path(folder) / "tree", "data")

    def number(self) -> int:
        """Return the number of the edit in the published image, as its users see it."""
        flags = ("--quiet", "exec", "--containall", "--no-home")
        words = [self.engine, *flags, str(self.site.sif), "tail", "-n1", "/data/number"]
        return int(subprocess.check_output(words, text=True))

    def learn(self) -> dict[str, float]:
        """Build each edit undisturbed; how many seconds the last one worked, and published.

        The first build is from scratch: it runs all steps in one tree, whose root has its time.
        """
        for number in EDITS if self.layer == LAYERS[0] else (EDITS[-1], *EDITS):
            self.edit(number)
            times = timed(self.start())
            self.known[number] = Known(digests=self.site.digests(), tree=self.tree())
        return times

    def assert_old_or_new(self, before: str, old: int, new: int) -> None:
        """Check after a kill, before another build: a whole image is there."""
        number = old if files.sha256(self.site.sif) == before else new
        assert self.number() == number
        assert number == old or self.tree() == self.known[number].tree

    def assert_right(self, number: int) -> None:
        """Check after an undisturbed build: no trace of the kill is left."""
        digests, known = self.site.digests(), self.known[number]
        # A base has the time of its build in it, and so has the root folder of those above it.
        if self.layer == LAYERS[0]:
            assert self.tree() == known.tree
        else:
            assert digests == known.digests
        if self.layout == "layered":
            parts = sif_file.partitions(self.site.sif)
            assert [sif_file.digest(self.site.sif, part) for part in parts[:-1]] == [
                *map(digests.get, LAYERS)
            ]
        assert_nothing_left(self.site)


@pytest.fixture
def site(tiny: Toy, tmp_path: Path) -> Site:
    tiny.layer("first", "seq 100000 >/first; touch -d @1400000000 /first\n")
    tiny.image("first", "work")
    for folder in PLACES:
        (tmp_path / "site" / folder).mkdir(parents=True)
    return Site(toy=tiny, folder=tmp_path / "site")


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
    assert site.leftovers() == []
    held = (site.store.root / CLAIMS, site.store.root / LEASES, site.folder / "temporary")
    assert [path for folder in held for path in folder.iterdir()] == []
    # One image of each edit, and what belongs to the last build.
    names = sorted(path.name for path in site.sif.parent.iterdir() if path.suffix != ".sif")
    texts = ["build.log", "pins.json", "plan.json", "record.json"]
    assert names == sorted([*texts, "provenance.json", "recipe", "sbom.cdx.json"])
    assert len([*site.sif.parent.glob("*.sif")]) == 1 + len(EDITS)


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
    late = not step and any(json.loads(line).get("step") == "publish" for line in whole_lines(rest))
    return process.returncode == -signal.SIGKILL and not late


def whole_lines(text: str) -> Iterator[str]:
    """Return the whole lines that a killed process has written."""
    return (line for line in text.splitlines(keepends=True) if line.endswith("\n"))


@pytest.mark.parametrize("disturbance", KILLS, ids=str)
def test_no_kill_loses_an_image(engine: str, site: Site, disturbance: tuple[int, str, str]) -> None:
    _kill_often(engine, site, *disturbance)


@pytest.mark.parametrize("layer", ["work", pytest.param("base-local", marks=slow)])
def test_no_kill_of_a_build_with_one_id_does(
    engine: str, site: Site, layer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ids.VARIABLE, "one")
    _kill_often(engine, site, 1, "flat", layer)


def _kill_often(engine: str, site: Site, wanted: int, layout: str, layer: str) -> None:
    killed = Killed(site=site, engine=engine, layout=layout, layer=layer)
    seconds = killed.learn()
    chance = random.Random(4711)  # noqa: S311  # moments, not secrets
    counts = {"": 0, "publish": 0}
    for attempt in range(ATTEMPTS * 2 * wanted):
        step = min(counts, key=lambda item: counts[item])
        if counts[step] == wanted:
            break
        new, old = EDITS[attempt % 2], EDITS[1 - attempt % 2]
        before = files.sha256(site.sif)
        killed.edit(new)
        if kill_after(chance.uniform(0, seconds[step]), step, killed.start()):
            counts[step] += 1
        else:  # too late: this machine is faster now than when the seconds were measured
            seconds[step] /= 2
        killed.assert_old_or_new(before, old, new)
        killed.build()
        killed.assert_right(new)
    assert counts == dict.fromkeys(counts, wanted)
    assert site.store.verify() == []
    assert killed.number() == new
    assert killed.tree() == killed.known[new].tree


def test_the_trees_that_are_compared_have_all_that_a_tree_can(engine: str, site: Site) -> None:
    """Compare trees that have everything a kill might lose."""
    killed = Killed(site=site, engine=engine, layout="layered", layer="work")
    killed.edit(1)
    killed.build()
    tree = killed.tree()
    assert tree["hard links"] == [["./data/again", "./data/number"]]
    assert tree["data/number"][-1] == {"user.toy": b"1".hex()}
    assert "security.capability" in tree["data/capable"][-1]
