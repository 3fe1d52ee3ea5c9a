"""Images with MPI and Horovod at the sites, and refusals with reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.model import LauncherOptions
from tests.unit.own_image import plan, refused

if TYPE_CHECKING:
    from sifwright.catalog.model import Catalog

REST = ("python-venv", "build-tools", "pytorch-wheel")
BASE = ("base-debian", *REST)


def test_an_mpich_newer_than_the_sites_is_refused(real: Catalog) -> None:
    message = refused(real, "derecho", (*BASE, "mpich"), "mpich.version=4.3.2")
    assert (
        "mpich.version=4.3.2 (--set): version 4.3.2 does not go with the site's mpi-version"
        in message
    )
    assert "may lack what a newer MPICH has | Nearest version that does: 3.4.3." in message


def test_an_mpich_for_no_cray_has_to_be_named(real: Catalog) -> None:
    assert "Give one: --set mpich.version=" in refused(real, "local", (*BASE, "mpich"))
    resolved = plan(real, "local", (*BASE, "mpich"), "mpich.version=5.0.1")
    assert resolved.facts["mpich"] == "5.0.1"


def test_horovod_needs_something_to_talk_over(real: Catalog) -> None:
    without_gloo = (*BASE, "mpich-wheel", "horovod"), "horovod.gloo=false"
    assert plan(real, "local", *without_gloo).steps[-1].options["mpi"].value == "mpich"
    message = refused(real, "local", *without_gloo, "horovod.mpi=none")
    assert "Horovod without MPI and without Gloo has nothing to talk over" in message
    assert "Nearest mpi that does: mpich." in message


def test_horovod_for_another_mpi_than_the_images(real: Catalog) -> None:
    message = refused(real, "local", (*BASE, "mpich-wheel", "horovod"), "horovod.mpi=openmpi")
    assert "mpi openmpi does not go with mpi mpich" in message
    assert "that is not the MPI in the image" in message


def test_horovod_without_mpi_is_said_so(real: Catalog) -> None:
    layers = (*BASE, "horovod")
    assert "Give one: --set horovod.mpi=" in refused(real, "local", layers)
    assert plan(real, "local", layers, "horovod.mpi=none").steps[-1].layer.name == "horovod"


def test_horovod_follows_torch_and_the_site(real: Catalog) -> None:
    def options(*settings: str) -> tuple[object, ...]:
        layers = ("base-cuda", *REST, "openmpi", "horovod")
        step = plan(real, "leonardo", layers, *settings).steps[-1]
        return tuple(step.options[name].value for name in ("vendor", "arch", "mpi", "cxx"))

    assert options() == ("nvidia", "sm_80", "openmpi", "17")
    older = "pytorch-wheel.version=2.0.1", "pytorch-wheel.variant=cu118", "base-cuda.cuda=11.8.0"
    assert options(*older)[-1] == "14"
    newer = "pytorch-wheel.version=2.14.0", "pytorch-wheel.variant=cu130", "base-cuda.cuda=13.0.2"
    assert options(*newer)[-1] == "20"


@pytest.mark.parametrize(
    ("layers", "says"),
    [
        ((*BASE, "mpi4py", "mpich-wheel"), "'mpi4py' requires 'mpi', which no layer before it"),
        ((BASE[0], "mpich-wheel"), "'mpich-wheel' requires 'python', which no layer before it"),
        ((*BASE[:2], "mpich-wheel"), "'mpich-wheel' requires 'compilers', which no layer before"),
        (
            (*BASE[:3], "mpich-wheel", "horovod"),
            "'horovod' requires 'torch', which no layer before",
        ),
    ],
)
def test_order(real: Catalog, layers: tuple[str, ...], says: str) -> None:
    assert says in refused(real, "local", layers)


@pytest.mark.parametrize(
    ("site", "layer"), [("frontier", "mpich-wheel"), ("leonardo", "mpich"), ("derecho", "openmpi")]
)
def test_the_wrong_mpi_for_a_site(real: Catalog, site: str, layer: str) -> None:
    message = refused(real, site, (*BASE, layer))
    assert f"layer '{layer}' does not suit: it is for mpi " in message


@pytest.mark.parametrize(
    ("spoken", "layer"),
    [(("pmi2",), "mpich-wheel"), (("pmix_v4",), "openmpi-wheel"), ((), "openmpi-wheel")],
)
def test_the_pmi_of_launchers_decides(real: Catalog, spoken: tuple[str, ...], layer: str) -> None:
    """Decide so at sites without an MPI of their own."""
    launch = {"srun": LauncherOptions(pmi=spoken)}
    lone = replace(real.sites["slurm-generic"], mpi="none", other_launchers=(), launch=launch)
    catalog = replace(real, sites={"lone": lone})
    resolved = plan(catalog, "lone", (*BASE, "openmpi-wheel|mpich-wheel|mpich|openmpi"))
    assert resolved.steps[-1].layer.name == layer


NO_PMI = LauncherOptions(pmi=("cray_shasta",))
PMIX, PMI1 = LauncherOptions(pmi=("pmix",)), LauncherOptions(pmi=("pmi1",))


@pytest.mark.parametrize(
    ("others", "launch", "says"),
    [
        (
            (),
            {"srun": NO_PMI},
            "pmi1, and srun speaks cray_shasta at site 'lone' (launch.srun.pmi)",
        ),
        (("mpirun",), {"srun": PMIX}, "pmi1, and srun speaks pmix and mpirun speaks pmix at site"),
        (("mpiexec",), {"srun": PMIX, "mpiexec": PMI1}, ""),
        ((), {}, ""),
    ],
)
def test_an_mpi_that_no_launcher_starts_is_refused(
    real: Catalog, others: tuple[str, ...], launch: dict[str, LauncherOptions], says: str
) -> None:
    site = replace(real.sites["slurm-generic"], mpi="none", other_launchers=others, launch=launch)
    lone = replace(real, sites={"lone": replace(site, name="lone")})
    if says:
        message = refused(lone, "lone", (*BASE, "mpich-wheel"))
        assert f"layer 'mpich-wheel': it is started by {says}" in message
        assert "or correct what the launchers speak" in message
    else:
        assert plan(lone, "lone", (*BASE, "mpich-wheel")).facts["pmi"] == "pmi1"


def test_where_the_images_mpi_starts_no_ranks_it_is_not_refused(real: Catalog) -> None:
    """Accept it: the host's takes its place, or ranks run on the host."""
    site = replace(
        real.sites["slurm-generic"], mpi="none", other_launchers=(), launch={"srun": NO_PMI}
    )
    for change in ({"host_mpi": real.sites["frontier"].host_mpi}, {"run_in": ("host",)}):
        lone = replace(real, sites={"lone": replace(site, **change)})
        assert plan(lone, "lone", (*BASE, "mpich-wheel")).facts["pmi"] == "pmi1"


@pytest.mark.parametrize(
    ("version", "mpich"), [("8.0.1", "3.4.3"), ("8.1.32", "3.4.3"), ("9.0.1", "4.1.2")]
)
def test_the_sites_version_decides(real: Catalog, version: str, mpich: str) -> None:
    sites = {"derecho": replace(real.sites["derecho"], mpi_version=version)}
    resolved = plan(replace(real, sites=sites), "derecho", (*BASE, "mpich"))
    assert resolved.steps[-1].options["version"].value == mpich


def test_a_cray_mpich_that_nobody_knows_is_refused(real: Catalog) -> None:
    sites = {"derecho": replace(real.sites["derecho"], mpi_version="10.0.0")}
    message = refused(replace(real, sites=sites), "derecho", (*BASE, "mpich"))
    assert "'10.0.0' is not in the table 'cray-mpich'" in message
