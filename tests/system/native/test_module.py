"""The native module brings what the native job scripts of its site set by themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog import site_environment
from tests.catalogs import REAL
from tests.system.native.conftest import LIBRARIES, MODULE, make_native_site

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.native.conftest import NativeSite

SITES = REAL.sites
LOAD = f"module load {MODULE}; env -0 >loaded; module unload {MODULE}"


@pytest.fixture
def frontier(tool: str, tmp_path: Path) -> NativeSite:
    """Return a place of the site that needs a path of its modules in LD_LIBRARY_PATH."""
    return make_native_site(tmp_path, tool, "frontier")


def loaded(native_site: NativeSite) -> dict[str, str]:
    pairs = (
        entry.partition("=") for entry in (native_site.folder / "loaded").read_text().split("\0")
    )
    return {name: value for name, _, value in pairs}


@pytest.mark.smoke
@pytest.mark.parametrize("site", ["derecho", "frontier"])
def test_it_sets_the_environment_of_the_site(tool: str, tmp_path: Path, site: str) -> None:
    native_site = make_native_site(tmp_path, tool, site)
    native_site.checked(LOAD)
    wanted = {**site_environment.always(SITES[site]), **SITES[site].mpi_environment}
    assert wanted.items() <= loaded(native_site).items()


def test_a_path_of_a_module_that_it_loads_comes_first(frontier: NativeSite) -> None:
    frontier.checked(LOAD, "export LD_LIBRARY_PATH=/mine")
    assert loaded(frontier)["LD_LIBRARY_PATH"] == f"{LIBRARIES}:/mine"


def test_values_of_the_user_stay(frontier: NativeSite) -> None:
    frontier.checked(
        f"{LOAD}\nmodule load {MODULE}\nmodule unload {MODULE}", "export NCCL_CROSS_NIC=7"
    )
    assert loaded(frontier)["NCCL_CROSS_NIC"] == "7"


def test_without_that_path_it_is_not_loaded_and_says_why(frontier: NativeSite) -> None:
    last = SITES["frontier"].modules.host[-1]
    (module,) = (frontier.folder / "modules").glob(f"{last}/*")
    module.write_text("#%Module1.0\n")
    native_site = replace(frontier, tool=f"{frontier.tool}; set +e")
    done = native_site.bash(f'module load {MODULE}; echo "[${{LOADEDMODULES:-}}]"')
    assert MODULE not in done.stdout
    message = " ".join(done.stderr.split())
    assert "LD_LIBRARY_PATH needs $CRAY_LD_LIBRARY_PATH of these modules: PrgEnv-gnu" in message
    assert "There is no variable CRAY_LD_LIBRARY_PATH." in message


def test_help_says_what_a_job_does_before(tool: str, tmp_path: Path) -> None:
    native_site = make_native_site(tmp_path, tool, "derecho")
    output = native_site.bash(f"module help {MODULE}")
    lines = [line.strip() for line in (output.stdout + output.stderr).splitlines()]
    start = lines.index("module --force purge")
    assert lines[start - 1] == (
        'command -v module >/dev/null || source "/etc/profile.d/z00_modules.sh"'
    )
    assert lines[start + 1] == f"module load {MODULE}"
