"""A small image, built where there is too little of something: disk, open files, file size."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.squash.pack import SQUASHFS
from sifwright.store import location
from sifwright.store.store import Store
from tests.conftest import run

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.engine.toys import Toy

PLACES = ("cache", "temporary", "output")
# More than a build of the toy takes, in bytes.
DISK = 100_000_000
# The bytes are the same whenever it is run.
WORK = """mkdir /data
seq 300000 >/data/numbers; seq 1 7 2000000 >/data/more; echo {} >/data/edit
find /data -exec touch -hd @1400000000 {{}} +
"""


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where one build of the toy has its folders; `folder` has those of `PLACES` and no other."""

    toy: Toy
    folder: Path

    @property
    def sif(self) -> Path:
        return self.folder / "output" / "local" / "toy" / "image.sif"

    @property
    def store(self) -> Store:
        return Store(root=self.folder / "cache" / location.root().name)

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
        return run([*limit, *self.command(*arguments)], env=self.environment)

    def digests(self) -> dict[str, str]:
        """What each layer's result is."""
        entries = self.store.entries()
        return {entry.manifest["layer"]: entry.digest(SQUASHFS) for entry in entries}

    def leftovers(self) -> list[Path]:
        """What is neither a result nor a log."""
        folders = (self.folder / "temporary", self.sif.parent, *self.store.root.glob("*"))
        return [path for folder in folders for path in folder.glob(".*")]


def edit(toy: Toy, number: int) -> None:
    toy.layer("work", WORK.format(number))


def prepared(toy: Toy, folder: Path) -> Site:
    """A site where the image before an edit stands; of its steps, the edited one is not cached."""
    toy.layer("first", "seq 100000 >/first; touch -d @1400000000 /first\n")
    toy.image("first", "work")
    edit(toy, 1)
    for place in PLACES:
        (folder / place).mkdir(parents=True)
    site = Site(toy=toy, folder=folder)
    for layout in ("flat", "layered"):
        assert site.build("--layout", layout).returncode == 0
    (work,) = (one for one in site.store.entries() if one.manifest["layer"] == "work")
    shutil.rmtree(work.folder)
    edit(toy, 2)
    return site


def copied(site: Site, folder: Path) -> Site:
    """Another site as this one is."""
    shutil.copytree(site.folder, folder, symlinks=True, dirs_exist_ok=True)
    return Site(toy=site.toy, folder=folder)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a small file system of its own; only root can."""
    folder.mkdir(parents=True)
    mounted = run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder])
    assert mounted.returncode == 0, mounted.stderr
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


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def states(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What became of each part of a build."""
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return {event["step"]: event["state"] for event in events if event["event"] == "finished"}
