"""Fixtures of the tests that load modules."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.install import modulefile
from sifwright.install.module import Bind, Module
from tests.conftest import run
from tests.system.apptainer.steps import make_root
from tests.system.easybuild.tools import LMOD, MODULECMD, TOOLS, Session, Tool

if TYPE_CHECKING:
    from pathlib import Path

NAME = "PyTorch"


@dataclass(kw_only=True)
class Installations:
    """Installations and their modulefiles below one folder."""

    folder: Path
    session: Session
    tool: Tool

    @property
    def root(self) -> Path:
        return self.folder / "soft ware"

    def module(self, version: str = "1.0", **given: Any) -> Module:
        """Write a modulefile, and an installation for it."""
        values: dict[str, Any] = {
            "name": NAME,
            "version": version,
            "sif": "image.sif",
            "central": "",
            "binds": (Bind(source=str(self.folder / "data"), target=str(self.folder / "data")),),
            "gpu": "",
            "environment": (),
            "site_environment": False,
            "description": "PyTorch for tests",
            "whatis": ("Description: PyTorch [for] $tests {",),
            "help": ("How to use it: $SIF and [this] {",),
        }
        result = Module(**values | given)
        self.install(version)
        file = self.session.modulepath / NAME / f"{version}{self.tool.ending}"
        file.parent.mkdir(parents=True, exist_ok=True)
        syntax: modulefile.Syntax = "lua" if self.tool.syntax == "lua" else "tcl"
        file.write_text(modulefile.modulefile(result, str(self.root / version), syntax))
        return result

    def install(self, version: str) -> Path:
        root = self.root / version
        for name in ("bin", "runscripts", "share/sifwright", "user-software"):
            (root / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "data").mkdir(exist_ok=True)
        (root / "image.sif").touch()
        (root / "share/sifwright/directory.squashfs").touch()
        if not (root / "user-software.current").is_symlink():
            (root / "user-software.current").symlink_to("share/sifwright/directory.squashfs")
        return root


def _available(tool: Tool) -> bool:
    needed = LMOD if tool.command == LMOD else str(MODULECMD)
    return os.path.exists(needed) and shutil.which("tclsh") is not None  # noqa: PTH110


@pytest.fixture(params=TOOLS, ids=[tool.name for tool in TOOLS])
def tool(request: pytest.FixtureRequest) -> Tool:
    if not _available(request.param):
        if os.environ.get("CI"):
            pytest.fail(f"CI installs {request.param.name}, but it is not there")
        pytest.skip(f"{request.param.name} is not installed: tools/install-test-programs")
    result: Tool = request.param
    return result


@pytest.fixture
def installations(tool: Tool, tmp_path: Path) -> Installations:
    (tmp_path / "modules").mkdir()
    session = Session(tool=tool, modulepath=tmp_path / "modules")
    return Installations(folder=tmp_path, session=session, tool=tool)


@pytest.fixture(scope="session")
def small_sif(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a SIF of a few programs of this machine."""
    folder = tmp_path_factory.mktemp("small")
    root = make_root(folder / "root")
    done = run([engine, "build", folder / "small.sif", root])
    assert done.returncode == 0, done.stderr
    return folder / "small.sif"
