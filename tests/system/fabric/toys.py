"""A small world of real shared libraries made with cc: NCCL, a plugin, libfabric and a torch."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, run

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

__all__ = ["World", "make_world"]

PROOF = ROOT / "defs" / "layers" / "libfabric" / "files" / "fabric_proof" / "main.py"
# Contents of a library that the proof reads: the names it opens (kept as whole strings) and its
# version.
LIBRARY = """
const char *const names[] = {NAMES};
int ncclGetVersion(int *version) { *version = VERSION; return 0; }
"""
FABRIC = """
const char *const runtime = "libcudart.so";
int fi_getinfo(void) { return 0; }
"""
PLUGIN = (
    "int fi_getinfo(void); int hwloc(void);\nint use(void) { return fi_getinfo() + hwloc(); }\n"
)
FI_INFO = """
#include <stdio.h>
#include <string.h>
int fi_getinfo(void);
int main(int count, char **words)
{
    if (count > 1 && !strcmp(words[1], "-l"))
        puts("cxi:\\n    version: 201.0\\ntcp:\\n    version: 201.0");
    else
        puts("libfabric: 2.3.1\\nlibfabric api: 2.3");
    return fi_getinfo();
}
"""
TORCH = """
import ctypes, os, types
__version__ = "2.8.0+cu126"
version = types.SimpleNamespace(cuda=CUDA, hip=HIP)
for name in LIBRARIES:
    ctypes.CDLL(os.path.join(os.path.dirname(__file__), name))
"""


@dataclass(frozen=True, kw_only=True)
class World:
    """Folders as an image has them, below one that is free to write."""

    folder: Path

    @property
    def fabric(self) -> Path:
        return self.folder / "libfabric"

    @property
    def plugins(self) -> Path:
        return self.folder / "plugin" / "lib"

    @property
    def system(self) -> Path:
        """Return the folder of the libraries in the loader's cache."""
        return self.folder / "system"

    def library(self, path: Path, source: str, *links: Path, soname: str = "") -> None:
        """Compile a shared library that finds its neighbours and those it links with."""
        path.parent.mkdir(parents=True, exist_ok=True)
        words = ["-shared", "-fPIC", f"-Wl,-soname,{soname or path.name}"]
        self.compile(path, source, *words, *_linked(path, links))

    def program(self, path: Path, source: str, *links: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.compile(path, source, *_linked(path, links))

    def compile(self, path: Path, source: str, *words: str) -> None:
        text = path.with_suffix(".c")
        text.write_text(source)
        done = run([_compiler(), text, "-o", path, *words])
        text.unlink()
        assert done.returncode == 0, done.stderr

    def nccl(self, names: str, interfaces: str = "10 9 8 7 6", version: int = 22705) -> None:
        """Make libnccl.so.2, which asks for these names and interfaces."""
        strings = [*names.split(), *(f"ncclNetPlugin_v{number}" for number in interfaces.split())]
        text = ", ".join(f'"{string}"' for string in strings)
        source = LIBRARY.replace("NAMES", text).replace("VERSION", str(version))
        self.library(self.system / "libnccl.so.2", source)

    def plugin(self, name: str, interfaces: str) -> None:
        exported = "".join(f"int ncclNetPlugin_v{number} = 1;\n" for number in interfaces.split())
        links = (self.fabric / "lib" / "libfabric.so.1", self.system / "libhwtoy.so.1")
        self.library(self.plugins / name, PLUGIN + exported, *links)

    def torch(self, *libraries: Path, cuda: str | None = "12.6", hip: str | None = None) -> None:
        """Make a torch package that maps these libraries when it is imported."""
        (self.folder / "packages" / "torch" / "lib").mkdir(parents=True, exist_ok=True)
        text = TORCH.replace("CUDA", repr(cuda)).replace("HIP", repr(hip))
        folder = self.folder / "packages" / "torch"
        text = text.replace(
            "LIBRARIES", repr([os.path.relpath(path, folder) for path in libraries])
        )
        (self.folder / "packages" / "torch" / "__init__.py").write_text(text)

    def prove(self, *, gpu: str = "nvidia", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the proof as test.sh does; LD_LIBRARY_PATH stands for the loader's cache."""
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.folder / "packages"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LD_LIBRARY_PATH": f"{self.plugins}:{self.system}",
            **variables,
        }
        options = ["--folder", self.plugins, "--libfabric", self.fabric]
        words = ["plugin", *options, "--gpu", gpu, "--provider", "cxi", "--release", "2.3.1"]
        return run([sys.executable, PROOF, *words], env=environment)


def make_world(folder: Path) -> World:
    """Make a right world: the proof passes."""
    world = World(folder=folder)
    fabric = world.fabric / "lib" / "libfabric.so.1"
    world.library(fabric, FABRIC)
    world.library(fabric.with_name("libcudart.so"), "int cuda = 1;\n")
    world.library(world.system / "libhwtoy.so.1", "int hwloc(void) { return 0; }\n")
    world.program(world.fabric / "bin" / "fi_info", FI_INFO, fabric)
    world.nccl("libnccl-net libnccl-net.so")
    world.plugin("libnccl-net.so", "12 11 10 9 8 7 6")
    world.torch(world.system / "libnccl.so.2")
    return world


def _linked(path: Path, links: tuple[Path, ...]) -> list[str]:
    """Link by relative paths, so that the world can be copied."""
    folders = [
        "$ORIGIN",
        *(f"$ORIGIN/{os.path.relpath(link.parent, path.parent)}" for link in links),
    ]
    return ["-Wl,--no-as-needed", *map(str, links), f"-Wl,-rpath,{':'.join(folders)}"]


def _compiler() -> str:
    program = shutil.which("cc") or shutil.which("gcc")
    if program is None:
        pytest.skip("no C compiler to make libraries with: apt-get install gcc")
    return program
