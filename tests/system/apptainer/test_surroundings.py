"""R1: where something is built, under which umask, on how many processors is not in the image."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.conftest import run
from tests.spread import spread
from tests.system.apptainer.toys import make_toy
from tests.system.apptainer.trials import PLACES, Site, edit
from tests.system.apptainer.wholes import whole

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.apptainer.steps import Tree

pytestmark = [pytest.mark.all, pytest.mark.build]

MODES = {"data": "0o40755", "data/numbers": "0o100644", "data/own": "0o102750", "first": "0o100644"}


class Around(NamedTuple):
    """A umask, processors as taskset(1) has them, and a name for the folder of everything."""

    umask: str
    processors: str
    name: str


USUAL = Around("022", "0-1", "usual")
OTHERS = (Around("007", "0-1", "group"), Around("077", "0", "another place of a long name"))


def site_at(folder: Path, tiny_base: Path) -> Site:
    toy = make_toy(folder / "project", tiny_base)
    toy.layer("first", "seq 9 >/first; touch -d @1400000000 /first\n")
    edit(toy, 1)
    own = "touch /data/own; chmod 2750 /data/own; touch -d @1400000000 /data /data/own\n"
    toy.layer("own", own)
    toy.image("first", "work", "own")
    for path in PLACES:
        (folder / path).mkdir()
    return Site(toy=toy, folder=folder)


def build(site: Site, around: Around) -> None:
    words = ["bash", "-c", 'umask "$0"; exec taskset -c "$1" "${@:2}"', *around[:2]]
    done = run([*words, *site.command()], env=site.environment, cwd=site.folder)
    assert done.returncode == 0, done.stdout + done.stderr


def from_scratch(tiny_base: Path, folder: Path, around: Around) -> tuple[Path, Tree]:
    """Return the base layer's result, and the tree of the image."""
    site = site_at(folder / around.name, tiny_base)
    build(site, around)
    (base,) = (entry for entry in site.store.entries() if entry.manifest["layer"] == "base-local")
    return base.folder, whole(site.sif, folder / "tree", "data")


def on_base(base: Path, tiny_base: Path, folder: Path, around: Around) -> dict[str, str]:
    """Return the digests of the steps' results on one that is cached."""
    site = site_at(folder / f"{around.name} on base", tiny_base)
    shutil.copytree(base, site.store.root / "entries" / base.name)
    build(site, around)
    return site.digests()


@pytest.mark.parametrize("around", spread(OTHERS, OTHERS[-1:]), ids=["group", "alone"])
def test_the_same_steps_anywhere_leave_the_same(
    tiny_base: Path, tmp_path: Path, around: Around
) -> None:
    """Compare bytes on the same base layer: the engine writes its time into a base layer."""
    base, tree = from_scratch(tiny_base, tmp_path, USUAL)
    assert {path: tree[path][0] for path in MODES} == MODES
    digests = on_base(base, tiny_base, tmp_path, USUAL)
    folder = tmp_path / f"of {around.name}"
    folder.mkdir()
    assert from_scratch(tiny_base, folder, around)[1] == tree
    assert on_base(base, tiny_base, folder, around) == digests
