"""Changes of steps to a tree, by both kinds of runs and in both layouts, as built by hand."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from sifwright.images.contents import listing
from sifwright.make_image.cache.store import Store
from sifwright.make_image.pack_layers.pack import LISTING
from sifwright.system import cache_folder
from tests.conftest import run, sifwright
from tests.system.apptainer.steps import POPULATE, differences
from tests.system.apptainer.test_squash import CASES, DOUBTED
from tests.system.apptainer.toys import Toy, succeeded
from tests.system.apptainer.wholes import list_tree, whole, without_times

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.system.apptainer.steps import Tree

pytestmark = pytest.mark.build

# Changes that names, times or sizes alone would not show.
SUBTLE: dict[str, list[str]] = {
    "other bytes, the same size and time": [
        "printf ONE >/data/one; touch -d @1000000000 /data/one",
        "printf One >/data/one; touch -d @1000000000 /data/one",
    ],
    "an older file renamed over another": ["mv /data/folder/two /data/one"],
    "a folder renamed": ["mv /data/folder /data/moved"],
    "folders of the same names exchanged": [
        "mkdir /data/a /data/b; printf 1 >/data/a/f; printf 2 >/data/b/f; printf 3 >/data/b/g",
        "mv /data/a /data/c; mv /data/b /data/a; mv /data/c /data/b",
    ],
    "files exchanged": [
        "mv /data/one /data/x; mv /data/folder/two /data/one; mv /data/x /data/two"
    ],
    "a copy in place of the file": ["cp -a /data/one /data/x; mv /data/x /data/one"],
    "a link in place of a copy": [
        "cp -a /data/one /data/x",
        "ln -f /data/one /data/x",
        "cp -a --remove-destination /data/one /data/folder/y; ln /data/folder/y /data/z",
    ],
    "a time, an owner, a mode": [
        "touch -d @900000000 /data/one; chown 7:8 /data/to-one -h; chmod 600 /data/folder/two"
    ],
    "a mode there and back": ["chmod 600 /data/one; chmod 644 /data/one"],
    "an attribute on a folder": [
        """python3 -c 'import os; os.setxattr("/data/empty", "user.note", b"1")'""",
        """python3 -c 'import os; os.removexattr("/data/empty", "user.note")'""",
    ],
    "all gone, then some there again": [
        "find /data -mindepth 1 ! -name capable -delete",
        "mkdir -p /data/folder/inner /data/empty; printf 9 >/data/folder/inner/three",
    ],
}
# squashfuse 0.1.105 lists security.capability by another name, which breaks every copying up.
CAPABLE: dict[str, list[str]] = {
    "a file with capabilities replaced": ["cp /usr/bin/true /data/x; mv /data/x /data/capable"],
    "a file with capabilities removed": ["rm /data/capable"],
}
# fuse-overlayfs 1.10 copies up one of a file's names only, and shows folders again that are gone.
DOUBTFUL: dict[str, list[str]] = {
    "one of two names written to": ["printf more >>/data/link-a"],
    "a folder renamed and back": ["mv /data/folder /data/moved", "mv /data/moved /data/folder"],
}
EASY = {name: case for name, case in CASES.items() if name not in DOUBTED}
DOUBTFUL |= {name: scripts for name, (scripts, _, _) in CASES.items() if name in DOUBTED}
DOUBTFUL |= {name: SUBTLE.pop(name) for name in ("all gone, then some there again",)}
COMMON = {**{name: scripts for name, (scripts, _, _) in EASY.items()}, **SUBTLE}
LAYERS = ("populate", "change-1", "change-2", "change-3")
# Changed files are newer than packed layers (2025-01-01 and some seconds).
SETTLE = "find /cases {} -newermt @1750000000 -exec touch -hd @{} {{}} +\n"


def fill(toy: Toy, cases: dict[str, list[str]]) -> tuple[str, ...]:
    """Let the toy do all cases at once, each in a folder of its own instead of in /data.

    Returns the layers that do it, the first of which makes what the cases start from.
    """
    populate = "".join(_script(number, POPULATE) for number in range(len(cases)))
    toy.layer("populate", f"mkdir /cases\n{populate}{SETTLE.format('', 10**9)}")
    for step, name in enumerate(LAYERS[1:]):
        parts = [
            _script(number, scripts[step])
            for number, scripts in enumerate(cases.values())
            if step < len(scripts)
        ]
        toy.layer(name, "".join(parts) + SETTLE.format("/usr", 1_400_000_000 + step))
    return LAYERS[: max(map(len, cases.values())) + 1]


def _script(number: int, text: str) -> str:
    return "(\n" + re.sub(r"/data\b", f"/cases/{number}", text) + "\n)\n"


def built(toy: Toy, layers: tuple[str, ...], layout: str, cache: Path) -> Path:
    toy.image(*layers)
    env = {**os.environ, "SIFWRIGHT_CACHE": str(cache)}
    succeeded(toy.build("--force", "--layout", layout, env=env))
    return toy.sif


def stepwise(toy: Toy, layers: tuple[str, ...], layout: str, cache: Path) -> Path:
    """Build each step but the first on results from the cache."""
    for count in range(1, len(layers)):
        built(toy, layers[:count], layout, cache)
    return built(toy, layers, layout, cache)


DEFINITION = ".singularity.d/Singularity"


def by_hand(engine: str, toy: Toy, sif: Path) -> Path:
    """Build in the recipe folder."""
    succeeded(run([engine, "build", "--fakeroot", sif, "toy.def"], cwd=toy.output / "recipe"))
    return sif


def by_single_file(engine: str, toy: Toy, sif: Path) -> Path:
    words = ["render", "--single-file", "local", "toy"]
    definition = sif.with_suffix(".def")
    definition.write_text(sifwright("--project", toy.folder, *words).stdout)
    succeeded(run([engine, "build", "--fakeroot", sif, definition]))
    return sif


def different(first: Tree, other: Tree, cases: dict[str, list[str]]) -> dict[str, object]:
    """Return the changes with the name of the case in place of its number."""
    return {
        re.sub(r"^cases/(\d+)", lambda match: list(cases)[int(match[1])], path): change
        for path, change in differences(first, other).items()
    }


def changed(cache: Path, number: int, steps: int) -> set[str]:
    """Return the paths of one case in the layer of its last step, as they would be in /data."""
    entries = Store(root=cache / cache_folder.root().name).entries()
    (entry,) = (entry for entry in entries if entry.manifest["layer"] == LAYERS[steps])
    paths = (os.fsdecode(node.path) for node in listing.read(entry.file(LISTING)))
    inside = re.compile(rf"cases/{number}(?=/|$)")
    return {inside.sub("data", path, count=1) for path in paths if inside.match(path)}


@pytest.mark.parametrize("sparse", ["200M", pytest.param("5G", marks=pytest.mark.slow)])
def test_every_way_gives_the_tree_that_is_built_by_hand(
    engine: str, tiny: Toy, tmp_path: Path, sparse: str
) -> None:
    """Build from nothing; step by step, each on cached ones; and again from the cache."""
    sized = [text.replace("5G", sparse) for text in COMMON["sizes"]]
    layers = fill(tiny, {**COMMON, "sizes": sized})
    cold, steps = tmp_path / "cold", tmp_path / "steps"
    first = built(tiny, layers, "flat", cold)
    expected = whole(first, tmp_path / "first", "cases")
    users = list_tree(engine, first, "cases")
    images = ((stepwise, "layered", steps), (built, "flat", steps), (built, "layered", cold))
    for number, (make, layout, cache) in enumerate(images):
        sif = make(tiny, layers, layout, cache)
        assert different(expected, whole(sif, tmp_path / f"{number}", "cases"), COMMON) == {}
        assert different(users, list_tree(engine, sif, "cases"), COMMON) == {}
    for number, build in enumerate((by_hand, by_single_file)):
        sif = build(engine, tiny, tmp_path / f"by-hand-{number}.sif")
        hand = without_times(whole(sif, tmp_path / f"hand-{number}", ""))
        # The image keeps the definition file that it was built from.
        texts = {DEFINITION} if build is by_hand else set()
        assert different(without_times(expected), hand, COMMON).keys() == texts
    assert_least(cold)
    assert_least(steps)


def assert_least(cache: Path) -> None:
    """Compare the layer of each case's last step with its changes: nothing else is in it."""
    for number, (name, (scripts, there, gone)) in enumerate(EASY.items()):
        wanted = {path for path in there | gone if path.startswith("data")}
        if name != "deep":
            assert changed(cache, number, len(scripts)) == wanted, name


def assert_as_by_hand(
    engine: str, toy: Toy, folder: Path, make: Callable[..., Path], cases: dict[str, list[str]]
) -> None:
    """Build the cases in a way of ours and by hand, and compare the whole trees."""
    sif = make(toy, fill(toy, cases), "layered", folder / "cache")
    ours = without_times(whole(sif, folder / "ours", ""))
    sif = by_single_file(engine, toy, folder / "by-hand.sif")
    hand = without_times(whole(sif, folder / "hand", ""))
    assert different(ours, hand, cases) == {}


def test_a_build_from_scratch_writes_to_no_overlay(engine: str, tiny: Toy, tmp_path: Path) -> None:
    assert_as_by_hand(engine, tiny, tmp_path, built, {**CAPABLE, **DOUBTFUL})


@pytest.mark.slow
@pytest.mark.parametrize("cases", [CAPABLE, DOUBTFUL], ids=["capable", "doubtful"])
def test_steps_that_overlays_get_wrong_run_in_a_tree(
    engine: str, tiny: Toy, tmp_path: Path, cases: dict[str, list[str]]
) -> None:
    assert_as_by_hand(engine, tiny, tmp_path, stepwise, cases)
