"""FlashAttention's source distribution with a twelfth of its kernels, and a project that pins it.

Kept are 6 of 72 objects: bfloat16 with heads of dimension 64, forward, split forward and backward,
causal or not. With one job on two busy cores, their step takes 38 minutes.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from typing import TYPE_CHECKING

import yaml

from sifwright.catalog import mirrors
from sifwright.host.network import http, upstream
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["KEPT", "narrow"]

LAYER = "defs/layers/flash-attention"
KEPT = "hdim64_bf16"
# Each choice of a kernel at run time leads to one that is there.
SWITCHES = {r"kHeadDim = \d+": "kHeadDim = 64", "cutlass::half_t": "cutlass::bfloat16_t"}


def narrow(project: Path, folder: Path) -> None:
    """Write the narrowed source into a new folder, and pin it in a copy of the definitions."""
    header = yaml.safe_load((ROOT / LAYER / "layer.yaml").read_text())
    version = header["options"]["version"]["default"]
    pins = project / LAYER / "pins.yaml"
    pin = yaml.safe_load(pins.read_text())["flash-attention"]["versions"][version]["sha256"]
    name = f"flash_attn-{version}"
    folder.mkdir()
    archive = folder / f"{name}.tar.gz"
    archive.write_bytes(_download(version, pin))
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    _leave_out_kernels(folder / name)
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(folder / name, name)
    pins.write_text(pins.read_text().replace(pin, hashlib.sha256(archive.read_bytes()).hexdigest()))


def _download(version: str, pin: str) -> bytes:
    address = upstream.sdist_of("flash-attn", version).address
    if path := mirrors.local_path(address):
        content = path.read_bytes()
    else:
        with http.open_response(address, large=True) as answer:
            content = answer.content
    assert hashlib.sha256(content).hexdigest() == pin, address
    return content


def _leave_out_kernels(tree: Path) -> None:
    setup, switch = tree / "setup.py", tree / "csrc/flash_attn/src/static_switch.h"
    lines = setup.read_text().splitlines(keepends=True)
    setup.write_text("".join(line for line in lines if "_sm80.cu" not in line or KEPT in line))
    text = switch.read_text()
    for pattern, replacement in SWITCHES.items():
        text = re.sub(pattern, replacement, text)
    switch.write_text(text)
