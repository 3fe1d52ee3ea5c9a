"""A SIF of two partitions that no engine would run, and its files."""

import hashlib
import json
from pathlib import Path

from sifwright.images.sif.fingerprint import measure
from sifwright.images.sif.write_sif import Contents, Partition, write

BASE, LAYER = b"base" * 5000, b"layer" * 300


def two_layers(
    path: Path, base: bytes = BASE, layer: bytes = LAYER, definition: bytes = b"Bootstrap: x\n"
) -> Path:
    parts = []
    for name, data in (("base", base), ("layer", layer)):
        file = path.with_name(f"{name}.part")
        file.write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        parts.append(Partition(path=file, name=name, is_system=name == "base", sha256=digest))
    write(path, Contents(partitions=parts, definition=definition, arch="amd64"))
    return path


def give_record(sif: Path) -> None:
    document = {"sif": sif.name, **measure(sif).document, "plan": {"name": "a [b"}}
    sif.with_name("record.json").write_text(json.dumps(document, indent=1))


def flip(file: Path, at: int) -> None:
    """Change one bit."""
    data = bytearray(file.read_bytes())
    data[at] ^= 4
    file.write_bytes(data)
