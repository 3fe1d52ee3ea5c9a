"""The site's own MPI in place of an image's, by the real bash."""

from dataclasses import replace
from pathlib import Path

import pytest

from sifwright.catalog.model import Catalog, Site
from tests.unit.jobs import Bench, Ran


@pytest.fixture
def hosting(real: Catalog, tmp_path: Path) -> Site:
    """Return Frontier, with libraries that are here."""
    (tmp_path / "gtl.so").touch()
    host = real.sites["frontier"].host_mpi
    assert host is not None
    host = replace(
        host,
        preload="$GTL/gtl.so",
        libraries=("/nowhere.so", f"{tmp_path}/gtl.so", "/etc/hostname"),
        binds=("/usr:/host/usr", "/nowhere"),
    )
    return replace(real.sites["frontier"], cache="", binds=("/var",), host_mpi=host)


def _host_mpi(bench: Bench, site: Site, **mine: str) -> Ran:
    host = {"GTL": str(bench.record.parent), "CRAY_MPICH_ROOTDIR": "/cray", "LD_LIBRARY_PATH": "/l"}
    text = bench.render(site, account="project", host_mpi=True)
    return bench.run(text, CRAY_LD_LIBRARY_PATH="/c:/d", **(host | mine))


def _given(ran: Ran) -> dict[str, str]:
    """Return the engine's values for the container, the same under both of its names."""
    first, second = (
        {
            name.removeprefix(prefix): value
            for name, value in ran.env.items()
            if name.startswith(prefix) and ("ENV_" in name or name.endswith("LIBS"))
        }
        for prefix in ("APPTAINER", "SINGULARITY")
    )
    assert first == second
    return first


def test_the_sites_mpi_in_place_of_the_images(bench: Bench, hosting: Site, tmp_path: Path) -> None:
    ran = _host_mpi(bench, hosting)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    rocm = "/opt/rocm/lib:/opt/rocm/lib64"
    assert _given(ran) == {
        "ENV_LD_LIBRARY_PATH": f"/cray/gtl/lib:{rocm}:/c:/d:/l:/opt/cray/pe/lib64",
        "ENV_LD_PRELOAD": f"{tmp_path}/gtl.so",
        "_CONTAINLIBS": f"{tmp_path}/gtl.so,/etc/hostname",
    }
    assert ran.env["APPTAINER_BINDPATH"] == "/var,/usr:/host/usr"
    assert ran.modules == ["module load cray-mpich-abi"]
    wanted = {"MPICH_GPU_SUPPORT_ENABLED": "1", "MPICH_SMP_SINGLE_COPY_MODE": "NONE"}
    assert wanted.items() <= ran.env.items()
    assert ran.env["LD_LIBRARY_PATH"] == "/l", "the launcher's own is as it was"


@pytest.mark.parametrize("program", ["APPTAINER", "SINGULARITY"])
def test_the_sites_mpi_leaves_what_is_set(bench: Bench, hosting: Site, program: str) -> None:
    mine = {f"{program}ENV_LD_LIBRARY_PATH": "/mine", f"{program}ENV_LD_PRELOAD": "/my.so"}
    mine |= {f"{program}_CONTAINLIBS": "/my/lib.so", "MPICH_GPU_SUPPORT_ENABLED": "0"}
    ran = _host_mpi(bench, hosting, **mine)
    given = _given(ran)
    assert given["ENV_LD_LIBRARY_PATH"].endswith(":/opt/cray/pe/lib64:/mine")
    assert given["ENV_LD_PRELOAD"].endswith("/gtl.so:/my.so")
    assert given["_CONTAINLIBS"].startswith("/my/lib.so,/")
    assert ran.env["MPICH_GPU_SUPPORT_ENABLED"] == "0"


def test_the_sites_mpi_without_its_libraries_ends_the_job(bench: Bench, hosting: Site) -> None:
    ran = _host_mpi(bench, hosting, GTL="/nowhere")
    assert (ran.code, ran.argv) == (66, [])
    assert ran.err == "job: there is no library '/nowhere/gtl.so'\n"
    ran = _host_mpi(bench, hosting, CRAY_MPICH_ROOTDIR="")
    assert ran.code != 0
    assert ran.argv == []
    assert "CRAY_MPICH_ROOTDIR" in ran.err
