"""Builds at once, of one image and of images that begin alike: R3."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from subprocess import PIPE
from typing import TYPE_CHECKING

import pytest

from tests.system.apptainer.toys import make_toy
from tests.system.apptainer.trials import Site

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.apptainer.toys import Toy

pytestmark = pytest.mark.build

# The first step takes long enough that all builds have come to it. The file of each step differs
# from run to run.
FIRST = "sleep 2; cat /proc/sys/kernel/random/uuid >/first\n"
IMAGES = {"toy": ("first", "work"), "other": ("first", "rest")}

# The images that are built at the same time.
BUILDS = [["toy"] * 8, ["toy", "other"], ["toy", "other"] * 2]


@pytest.fixture
def toy(tiny_base: Path, tmp_path: Path) -> Toy:
    """Make two images, which differ from the third layer on."""
    toy = make_toy(tmp_path / "project", tiny_base)
    toy.layer("first", FIRST)
    for name in ("work", "rest"):
        toy.layer(name, f"cat /proc/sys/kernel/random/uuid >/{name}\n")
    images = toy.folder / "defs" / "images"
    toy.image(*IMAGES["other"])
    shutil.copy(images / "toy.yaml", images / "other.yaml")
    toy.image(*IMAGES["toy"])
    return toy


def start(toy: Toy, folder: Path, number: int, image: str) -> tuple[Path, subprocess.Popen[str]]:
    """Start a build with the common cache and an output of its own; the image's folder."""
    site = Site.make(toy, folder)
    command = site.command("--layout", "layered")
    command[command.index("toy")] = image
    output = folder / "output" / f"{number}"
    command[command.index("--output") + 1] = str(output)
    process = subprocess.Popen(
        command, env=site.environment, stdout=PIPE, stderr=subprocess.STDOUT, text=True
    )
    return output / "local" / image, process


def build(toy: Toy, folder: Path, images: list[str]) -> list[Path]:
    """Build all of them at once; their folders."""
    builds = [start(toy, folder, number, image) for number, image in enumerate(images)]
    outputs = [process.communicate(timeout=300)[0] for _, process in builds]
    assert [process.returncode for _, process in builds] == [0] * len(images), outputs
    return [target for target, _ in builds]


@pytest.mark.parametrize("images", BUILDS)
def test_each_step_is_run_once(toy: Toy, tmp_path: Path, images: list[str]) -> None:
    """Run every step once in all builds together; images of one name are equal."""
    folder = tmp_path / "site"
    places = build(toy, folder, images)
    logs = "".join((location / "build.log").read_text() for location in places)
    lines = (line.split()[-1] for line in logs.splitlines() if line.startswith("sifwright: begin "))
    layers = {layer for location in places for layer in ("base-local", *IMAGES[location.name])}
    assert Counter(lines) == Counter(layers)
    records = [json.loads((location / "record.json").read_text()) for location in places]
    results = (record["sif_fingerprint"] for record in records)
    digests = set(zip((location.name for location in places), results, strict=True))
    assert len(digests) == len({location.name for location in places})
    store = Site(toy=toy, folder=folder).store
    assert store.verify() == []
    assert len(store.entries()) == len(layers)
    assert [path.name for path in store.root.glob("*/.*")] == []
