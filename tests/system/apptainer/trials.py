"""A small image and what an undisturbed build makes of it, for tests that disturb builds."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.images.sif import sif_file
from sifwright.images.sif.fingerprint import sif_fingerprint
from sifwright.make_image.cache.store import Store
from sifwright.make_image.pack_layers.pack import SQUASHFS
from sifwright.system import cache_folder
from tests.conftest import run, sifwright
from tests.system.apptainer.wholes import whole

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.system.apptainer.steps import Tree
    from tests.system.apptainer.toys import Toy

LAYERS = ("base-local", "first", "work")
PLACES = ("cache", "temporary", "output")
# The bytes are the same whenever it is run.
WORK = """mkdir /data
seq 300000 >/data/numbers; seq 1 7 2000000 >/data/more; echo {number} >/data/edit
find /data -exec touch -hd @1400000000 {{}} +
"""


@dataclass(frozen=True, kw_only=True)
class Site:
    """The folders of one build of the toy; `folder` has those of `PLACES` and no other."""

    toy: Toy
    folder: Path

    @classmethod
    def make(cls, toy: Toy, folder: Path) -> Site:
        for path in PLACES:
            (folder / path).mkdir(parents=True, exist_ok=True)
        return cls(toy=toy, folder=folder)

    @property
    def sif(self) -> Path:
        return self.folder / "output" / "local" / "toy" / "image.sif"

    @property
    def store(self) -> Store:
        return Store(root=self.folder / "cache" / cache_folder.root().name)

    def command(self, *arguments: str) -> list[str]:
        words = self.toy.command("--json", *arguments)
        words[words.index("--output") + 1] = str(self.folder / "output")
        return [sys.executable, "-m", "sifwright", *words]

    @property
    def environment(self) -> dict[str, str]:
        names = {"SIFWRIGHT_CACHE": "cache", "TMPDIR": "temporary", "APPTAINER_TMPDIR": "temporary"}
        return {**os.environ, **{name: str(self.folder / at) for name, at in names.items()}}

    def build(self, *arguments: str, limit: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Build the toy; `limit` is a command that runs another one with less of something."""
        words = self.command(*arguments)
        if limit:
            return run([*limit, *words], env=self.environment)
        return sifwright(*words[3:], env=self.environment)

    def digests(self) -> dict[str, str]:
        """Return the digest of each layer's result that was used last."""
        entries = reversed(self.store.entries())
        return {entry.manifest["layer"]: entry.digest(SQUASHFS) for entry in entries}

    def leftovers(self) -> list[Path]:
        """Return the files that are neither results nor logs."""
        folders = (self.folder / "temporary", self.sif.parent, *self.store.root.glob("*"))
        return [path for folder in folders for path in folder.glob(".*")]


def copied(site: Site, folder: Path) -> Site:
    """Copy this site to another one."""
    shutil.copytree(site.folder, folder, symlinks=True, dirs_exist_ok=True)
    return Site(toy=site.toy, folder=folder)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A site to begin with, and what an undisturbed build leaves there.

    `digests` are those of the steps' results, `tree` is the image's.
    """

    site: Site
    digests: Mapping[str, str]
    tree: Tree

    @classmethod
    def of(
        cls,
        toy: Toy,
        folder: Path,
        install: str = WORK,
        layouts: Sequence[str] = ("flat", "layered"),
    ) -> Trial:
        """Build the image from before an edit; only the edited step is not cached afterwards."""
        toy.layer("first", "seq 100000 >/first; touch -d @1400000000 /first\n")
        toy.image("first", "work")
        toy.layer("work", install.format(number=1))
        site = Site.make(toy, folder / "site")
        for layout in layouts:
            assert site.build("--layout", layout).returncode == 0
        (workdir,) = (entry for entry in site.store.entries() if entry.manifest["layer"] == "work")
        shutil.rmtree(workdir.folder)
        toy.layer("work", install.format(number=2))
        other = copied(site, folder / "undisturbed")
        assert other.build("--layout", "flat").returncode == 0
        tree = whole(other.sif, folder / "tree", "data")
        return cls(site=site, digests=other.digests(), tree=tree)

    def assert_right(self, site: Site) -> None:
        """Check that the published image has whole results, and equals the undisturbed one."""
        digests = site.digests()
        # A base layer has the time of its build, and so has the root folder of those above it.
        if digests["base-local"] == self.digests.get("base-local"):
            assert digests == self.digests
        assert site.leftovers() == []
        record = json.loads((site.sif.parent / "record.json").read_text())
        assert sif_fingerprint(site.sif) == record["sif_fingerprint"]
        if record["layout"] == "layered":
            parts = [
                sif_file.digest(site.sif, partition) for partition in sif_file.partitions(site.sif)
            ]
            assert parts[:-1] == [digests[name] for name in LAYERS]
        assert whole(site.sif, site.folder / "tree", "data") == self.tree


def spoil(path: Path, harm: str) -> None:
    """Harm a file; without its head, no program can mount it."""
    data = bytearray(path.read_bytes())
    if harm == "cut":
        os.truncate(path, len(data) - 1)
    elif harm == "empty":
        path.write_bytes(b"")
    elif harm == "head":
        path.write_bytes(bytes(96) + data[96:])
    elif harm == "flip":
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    else:
        path.unlink()
        if harm == "folder":
            path.mkdir()


def states(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the state of each part of a build."""
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return {event["step"]: event["state"] for event in events if event["event"] == "finished"}
