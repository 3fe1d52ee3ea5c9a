"""Lmod and Environment Modules, run as their shell functions run them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT, run

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

__all__ = ["LMOD", "MODULECMD", "NEEDS_BOTH", "TOOLS", "Session", "Tool"]

LMOD = "/usr/share/lmod/lmod/libexec/lmod"
MODULECMD = next((ROOT / "build/environment-modules").glob("usr/lib/*/modulecmd.tcl"), None)
NEEDS_BOTH = pytest.mark.skipif(
    not (Path(LMOD).exists() and MODULECMD),
    reason="Lmod or Environment Modules is not installed: tools/install-test-programs",
)
# Variables that the two keep for themselves; Lmod's counts of path entries stay after an unload.
BOOKS = ("_ModuleTable", "__LMOD_", "__MODULES_", "LOADEDMODULES", "_LMFILES_")


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A program and a syntax of modulefiles that it reads."""

    name: str
    command: str
    syntax: str

    @property
    def ending(self) -> str:
        return ".lua" if self.syntax == "lua" else ""


TOOLS = [
    Tool(name="lmod-lua", command=LMOD, syntax="lua"),
    Tool(name="lmod-tcl", command=LMOD, syntax="tcl"),
    Tool(name="modules", command=f"tclsh {MODULECMD}", syntax="tcl"),
]


@dataclass(kw_only=True)
class Session:
    """Shell sessions with the modules of one folder; each is a new shell."""

    tool: Tool
    modulepath: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    how: Mapping[str, Any] = field(default_factory=dict)

    def run(self, script: str, **preset: str) -> subprocess.CompletedProcess[str]:
        """Run bash commands, in which `module` is there, and `state FILE` keeps the environment."""
        lines = [
            f'module() {{ eval "$({self.tool.command} bash "$@" 2> >(cat >&3) || echo false)"; }}',
            "state() { env -0 >$1; }",
            "exec 3>&2",
            script,
        ]
        base = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin", "LC_ALL": "C.UTF-8"}
        own = {"HOME": os.environ.get("HOME", "/"), "MODULEPATH": str(self.modulepath)}
        env = {**base, **own, **self.environment, **preset}
        return run(["bash", "-c", "\n".join(lines)], env=env, cwd=self.modulepath, **self.how)

    def states(self, script: str, **preset: str) -> list[dict[str, str]]:
        """Return the environments after each of these commands, the first before all."""
        commands = [line.strip() for line in script.splitlines() if line.strip()]
        steps = ["state 0", *(f"{line}\nstate {n}" for n, line in enumerate(commands, start=1))]
        done = self.run("\n".join(steps), **preset)
        # Lmod tells of a swap.
        assert "rror" not in done.stderr, done.stderr
        return [read(self.modulepath / str(number)) for number in range(len(commands) + 1)]


def read(file: Path) -> dict[str, str]:
    """Read an environment that `state` kept, without the module tools' own variables."""
    pairs = (entry.partition("=") for entry in file.read_text().split("\0") if entry)
    return {name: value for name, _, value in pairs if not name.startswith(BOOKS) and name != "_"}
