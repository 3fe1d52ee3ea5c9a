"""Native modules bring what job scripts of the site set, and give the user's own values back."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog import site_environment
from tests.catalogs import REAL
from tests.conftest import run, sifwright
from tests.system.native.conftest import LIBRARIES, MODULE, STATE, make_native_site
from tests.system.native.project import MODULE as TINY
from tests.system.native.test_host_software import change_site

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.native.conftest import NativeSite
    from tests.system.native.project import Project

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


# ---- the module of an installation ----------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.parametrize("mine", ["", "of the user's $HOME"])
def test_values_come_back(project: Project, tool: str, mine: str) -> None:
    """Restore values after two loads as well; without values of the user, leave none."""
    assert project.install().returncode == 0
    load = f"module use {project.prefix}/modulefiles; module load {TINY}"
    script = f"""set -eu
        {tool.partition(";")[0]}
        {STATE}
        {load}; module unload {TINY}
        state before
        {load}; echo "$HAS_LAST"; {load}; module unload {TINY}
        state after"""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(project.folder), "LC_ALL": "C.UTF-8"}
    env |= {"HAS_LAST": mine, "SITE_WIDE": mine} if mine else {}
    done = run(["bash", "-c", script], cwd=project.folder, env=env)
    assert done.returncode == 0, done.stderr
    version = (project.prefix / "current").resolve()
    assert done.stdout == f"{version}/last\n"
    before, after = ((project.folder / name).read_text() for name in ("before", "after"))
    assert after == before
    assert (f'HAS_LAST="{mine}"'.replace("$", r"\$") in after) == bool(mine)


# Module two is gone, cannot be loaded, or sets its variable no more.
GONE = "rm $MODULEPATH/two/1"
FAILS = "sed -i '2i if { [module-info mode load] } { break }' $MODULEPATH/two/1"
SETS_NOTHING = "sed -i 's/^setenv.*/if { ! [module-info mode load] } { & }/' $MODULEPATH/two/1"


@pytest.mark.parametrize(
    ("change", "is_active"),
    [(GONE, False), (FAILS, False), (FAILS, True), (SETS_NOTHING, False), (SETS_NOTHING, True)],
)
def test_a_module_of_the_site_that_is_gone(
    project: Project, tool: str, tmp_path: Path, change: str, *, is_active: bool
) -> None:
    """Give the user's modules back without a module, or its variable, and leave nothing else."""
    modules, init = tmp_path / "modules", tmp_path / "init"
    for name in ("one", "two", "mine"):
        (modules / name).mkdir(parents=True)
        (modules / name / "1").write_text(f"#%Module1.0\nsetenv {name.upper()} yes\n")
    init.write_text(tool.partition(";")[0])
    own = {"purge": "plain", "host": ["one/1", "two/1"], "library-path": "$TWO/lib"}
    change_site(project, modules={"init": str(init), **own})
    done = sifwright(*project.words(), env=os.environ | {"MODULEPATH": str(modules)})
    assert done.returncode == 0, done.stderr
    script = f"""set -u
        source {init}; {STATE}
        module load mine/1; module purge; module load mine/1
        state before
        {"source $PREFIX/current/bin/activate" if is_active else ""}
        {change}
        source $PREFIX/current/bin/activate
        echo "$? $LOADEDMODULES"
        state after"""
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "PREFIX": str(project.prefix)}
    env["MODULEPATH"] = str(modules)
    done = run(["bash", "-c", script], cwd=project.folder, env=env)
    assert done.stdout == "1 mine/1\n", done.stderr
    assert ("no module sets TWO" in done.stderr) == (change == SETS_NOTHING)
    before, after = ((project.folder / name).read_text() for name in ("before", "after"))
    assert after == before
