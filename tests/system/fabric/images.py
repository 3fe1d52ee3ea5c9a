"""Images of Debian's CUDA or ROCm with libfabric and the network plugin, and what spoils them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.catalog import mirrors
from sifwright.host.network import http
from tests.checkouts import copy_project, write_image
from tests.conftest import run, sifwright

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["STACKS", "Stack", "make_project", "missing_sources"]

SOURCES = (
    "aws/aws-ofi-nccl",
    "ofiwg/libfabric",
    "HewlettPackard/shs-libcxi",
    "HewlettPackard/shs-cxi-driver",
    "HewlettPackard/shs-cassini-headers",
)


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A site with the vendor's GPUs and the toolkit from Debian that stands for its own."""

    site: str
    toolkit: str
    gpu: str
    library: str
    plugin: str

    @property
    def image(self) -> str:
        return f"fabric-{self.gpu}"


STACKS = {
    "cuda": Stack(
        site="derecho",
        toolkit="cuda-debian",
        gpu="nvidia",
        library="/usr/lib/x86_64-linux-gnu/libnccl.so.2",
        plugin="libnccl-net.so",
    ),
    "rocm": Stack(
        site="frontier",
        toolkit="rocm-debian",
        gpu="amd",
        library="/usr/lib/x86_64-linux-gnu/librccl.so.1",
        plugin="librccl-net.so",
    ),
}


def missing_sources(names: Iterable[str] = SOURCES) -> str:
    """Return the first source that SIFWRIGHT_MIRRORS has no rule for and that does not answer."""
    given = mirrors.load()
    for name in names:
        address = f"https://github.com/{name}.git"
        asked = f"{address}/info/refs?service=git-upload-pack"
        if given.redirect(address, "git") == address and http.unreachable(asked):
            return address
    return ""


def make_project(folder: Path) -> Path:
    """Copy the real definitions and add an image for each stack."""
    copy_project(folder)
    debian = {"layer": "base-debian", "options": {"suite": "trixie"}}
    for stack in STACKS.values():
        names = ("python-venv", stack.toolkit, "build-tools", "libfabric", "aws-ofi-nccl")
        write_image(folder, stack.image, (debian, *names))
    return folder


def build(project: Path, stack: Stack, output: Path) -> subprocess.CompletedProcess[str]:
    words = ["--project", project, "build", stack.site, stack.image, "--output", output]
    return sifwright(*words, timeout=3600)


def prove(
    engine: str, image: Path, spoil: str = "true", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Spoil the image, in memory only, and run the plugin's own test in it."""
    record = json.loads((image.parent / "record.json").read_text())
    options = next(s for s in record["plan"]["steps"] if s["layer"] == "aws-ofi-nccl")["options"]
    words = [
        f"OPT_{name.upper().replace('-', '_')}={option['value']}"
        for name, option in options.items()
    ]
    test = "bash /opt/sifwright/tests/aws-ofi-nccl/test.sh"
    script = f'set -e; cd /; {spoil}; exec env "$@" {test}'
    words += [f"{name}={value}" for name, value in variables.items()]
    flags = ["--fakeroot", "--writable-tmpfs", "--containall", "--no-home"]
    return run([engine, "--quiet", "exec", *flags, image, "bash", "-c", script, "bash", *words])
