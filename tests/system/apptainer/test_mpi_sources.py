"""MPICH and Open MPI compiled from their release archives, on the image of site local, and run.

A version whose archive does not answer is skipped, on the network or where SIFWRIGHT_MIRRORS leads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from sifwright.catalog import mirrors
from sifwright.host.network import http
from sifwright.plan.sources import fill
from tests import stacks
from tests.conftest import ROOT, sifwright
from tests.stacks import ADD_UP, IN_MPICH, IN_OPEN_MPI, Sif

if TYPE_CHECKING:
    from pathlib import Path

# Each of these releases was compiled once.
BUILDS = {
    "mpich-3.4.3": pytest.mark.builds(
        "mpich", by="make test-slow", depth="ran on CPUs", options={"version": "3.4.3"}
    ),
    "mpich-4.1.2": pytest.mark.builds(
        "mpich", by="make test-slow", depth="ran on CPUs", options={"version": "4.1.2"}
    ),
    "openmpi-5.0.10": pytest.mark.builds(
        "openmpi", by="make test-slow", depth="ran on CPUs", options={"version": "5.0.10"}
    ),
}
LAUNCHERS = {"mpich": IN_MPICH, "openmpi": IN_OPEN_MPI}
VENDORS = {"mpich": "MPICH", "openmpi": "Open MPI"}
# The version for the oldest Cray MPICH, which is that of a site where Horovod is possible.
WITH_HOROVOD = "3.4.3"
# Series of the image's MPICH -> wheels that stand for a site's own MPICH. None is older: Cray's
# MPICH 8 is a 3.4 and its 9 a 4.1.
HOSTS = {"3.4": ("3.4.3", "4.1.3"), "4.1": ("4.1.3",), "4.3": ("4.3.2",), "5.0": ("5.0.1",)}
WHICH = """
from mpi4py import MPI
total = MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1)
with open("/proc/self/maps") as maps:
    print(total, *sorted({line.split()[-1] for line in maps if "/libmpi." in line}))
"""


def source(layer: str) -> dict[str, Any]:
    pins = yaml.safe_load((ROOT / "defs" / "layers" / layer / "pins.yaml").read_text())
    return dict(pins[layer])


def missing(layer: str, version: str) -> str:
    """Return the archive's address if neither it nor a copy of it answers."""
    address = fill(source(layer)["archive"], version)
    return address if http.unreachable(mirrors.load().redirect(address, "archives")) else ""


@dataclass(frozen=True)
class Release:
    layer: str
    version: str


def parameters(*layers: str) -> list[Any]:
    """Return every pinned release of the layers."""
    releases = {
        f"{layer}-{version}": Release(layer, version)
        for layer in layers
        for version in source(layer)["versions"]
    }
    return [
        pytest.param(release, marks=BUILDS.get(name, ()), id=name)
        for name, release in releases.items()
    ]


@pytest.mark.parametrize("layer", LAUNCHERS)
def test_the_mirrors_archives_are_those_that_were_pinned(layer: str) -> None:
    address = source(layer)["archive"]
    if mirrors.load().redirect(address, "archives") == address:
        pytest.skip(f"SIFWRIGHT_MIRRORS has no rule for {address}")
    versions = [name for name in source(layer)["versions"] if not missing(layer, name)]
    assert versions, f"no release of {VENDORS[layer]} answers"
    for version in versions:
        done = sifwright("pins", layer, layer, version, "--check")
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session", params=parameters("mpich", "openmpi"))
def release(request: pytest.FixtureRequest) -> Release:
    wanted: Release = request.param
    if address := missing(wanted.layer, wanted.version):
        pytest.skip(f"{address} does not answer; SIFWRIGHT_MIRRORS names no copy")
    return wanted


@pytest.fixture(scope="session")
def compiled(release: Release, engine: str, image: Path) -> Path:
    """Build the image once per release; its build runs the layers' own tests."""
    assert engine
    more = ("horovod",) if release == Release("mpich", WITH_HOROVOD) else ()
    return stacks.from_source(image, release.layer, release.version, *more)


@pytest.fixture
def sif(engine: str, compiled: Path, tmp_path: Path) -> Sif:
    return stacks.opened(engine, compiled, tmp_path)


@pytest.mark.slow
@pytest.mark.image
@pytest.mark.build
def test_the_compiled_mpi(sif: Sif, release: Release) -> None:
    """Let mpi4py add up torch's memory, ask the run script for the ranks, and notice a version."""
    launcher, vendor = LAUNCHERS[release.layer], VENDORS[release.layer]
    output = sif.says(*launcher, "conda-python-simple", "-c", ADD_UP)
    assert output == f"{vendor} [3.0] of 2\n"
    assert stacks.ranks(sif, launcher) == ["0 2", "1 2"]
    done = sif.test(release.layer, version="9.9.9")
    assert done.returncode == 1
    assert done.stderr == f"{vendor} is {release.version}, not 9.9.9\n"


@pytest.mark.slow
@pytest.mark.image
@pytest.mark.build
@pytest.mark.parametrize("release", parameters("mpich"), indirect=True)
def test_a_hosts_mpich_takes_the_place_of_the_images(sif: Sif, release: Release) -> None:
    """Use mpi4py, which asks for every function that its MPICH had when it was compiled."""
    words = (*IN_MPICH, "python", "-c", WHICH)
    assert libraries(sif.says(*words)) == ["3 /opt/mpich/lib/libmpi.so.12"] * 2
    for version in HOSTS[release.version.rpartition(".")[0]]:
        stacks.wheel_of_mpich(version, sif.workdir / version)
        output = sif.says(
            f"/mnt/{version}/bin/{words[0]}", *words[1:], LD_LIBRARY_PATH=f"/mnt/{version}/lib"
        )
        assert libraries(output) == [f"3 /mnt/{version}/lib/libmpi.so.12"] * 2


def libraries(output: str) -> list[str]:
    """Return the sums and libraries of the ranks, without the suffix of MPICH's ABI."""
    return [line[: line.index(".so.12") + len(".so.12")] for line in output.splitlines()]


@pytest.mark.slow
@pytest.mark.image
@pytest.mark.build
@pytest.mark.parametrize(
    "release",
    [parameter for parameter in parameters("mpich") if parameter.values[0].version == WITH_HOROVOD],
    indirect=True,
)
def test_horovodrun_takes_mpi_unless_it_is_told_gloo(sif: Sif) -> None:
    for options, controller in (((), "MPI"), (("--gloo",), "Gloo")):
        result = stacks.sums_of_horovod(sif, *options)
        assert result == [(rank, "[3.0]", controller) for rank in "01"]
