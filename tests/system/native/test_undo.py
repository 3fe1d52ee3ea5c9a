"""The module of an installation gives the user's own values back when it is unloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.system.native.conftest import STATE
from tests.system.native.project import MODULE

if TYPE_CHECKING:
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
