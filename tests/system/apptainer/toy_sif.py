"""A small SIF of a few layers, each with one file."""

from pathlib import Path

from sifwright.images.sif import write_sif
from sifwright.images.sif.write_sif import Contents
from tests.system.apptainer.sifs import pack


def toy_sif(folder: Path, compressors: list[str], processor: str = "amd64") -> Path:
    parts = []
    for number, compressor in enumerate(compressors):
        tree = folder / f"l{number}"
        (tree / "data").mkdir(parents=True)
        (tree / "data" / str(number)).write_text(f"of layer {number}\n")
        if number == 0:
            (tree / ".singularity.d/actions").mkdir(parents=True)
            (tree / ".singularity.d/actions/exec").write_text('#!/bin/sh\nexec "$@"\n')
        parts.append(pack(tree, is_system=number == 0, compression=compressor))
    contents = Contents(partitions=parts, definition=b"Bootstrap: x\n", arch=processor)
    write_sif.write(folder / "layered.sif", contents)
    return folder / "layered.sif"
