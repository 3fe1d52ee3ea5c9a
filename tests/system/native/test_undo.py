"""The module of an installation gives the user's own values back when it is unloaded."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run, sifwright
from tests.system.native.conftest import STATE
from tests.system.native.project import MODULE
from tests.system.native.test_host_software import change_site

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.native.project import Project


@pytest.mark.smoke
@pytest.mark.parametrize("mine", ["", "of the user's $HOME"])
def test_values_come_back(project: Project, tool: str, mine: str) -> None:
    """Restore values after two loads as well; without values of the user, leave none."""
    assert project.install().returncode == 0
    load = f"module use {project.prefix}/modulefiles; module load {MODULE}"
    script = f"""set -eu
        {tool.partition(";")[0]}
        {STATE}
        {load}; module unload {MODULE}
        state before
        {load}; echo "$HAS_LAST"; {load}; module unload {MODULE}
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
