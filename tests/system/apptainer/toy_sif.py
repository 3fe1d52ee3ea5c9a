"""A small SIF of a few layers, each with one file."""

import hashlib
from pathlib import Path

from sifwright.images.sif import write_sif
from sifwright.images.sif.write_sif import Contents, Partition
from sifwright.make_image.pack_layers.pack import squash_command
from tests.conftest import run


def toy_sif(folder: Path, compressors: list[str], processor: str = "amd64") -> Path:
    parts = [_partition(folder, number, name) for number, name in enumerate(compressors)]
    contents = Contents(partitions=parts, definition=b"Bootstrap: x\n", arch=processor)
    write_sif.write(folder / "layered.sif", contents)
    return folder / "layered.sif"


def _partition(folder: Path, number: int, compressor: str) -> Partition:
    tree = folder / f"tree-{number}"
    (tree / "data").mkdir(parents=True)
    (tree / "data" / str(number)).write_text(f"of layer {number}\n")
    if number == 0:
        (tree / ".singularity.d/actions").mkdir(parents=True)
        (tree / ".singularity.d/actions/exec").write_text('#!/bin/sh\nexec "$@"\n')
    target = folder / f"{number}.sqfs"
    assert run(squash_command(target, compressor), cwd=tree).returncode == 0
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    return Partition(path=target, name=f"l{number}", is_system=number == 0, sha256=digest)
