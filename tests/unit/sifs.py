"""A SIF that no engine would run, for what looks at nothing in it, and small squashfs files."""

import tempfile
from functools import cache
from pathlib import Path

from sifwright.catalog.model import LayerFile
from sifwright.images.sif.write_sif import Composed, Contents, write
from sifwright.make_image.pack_layers.pack import PackOptions
from sifwright.make_image.pack_layers.pack_files import pack_files

__all__ = ["squashfs_of", "write_sif"]


def write_sif(path: Path, data: bytes, processor: str = "amd64") -> str:
    """Write one whose partition is these bytes, and return its fingerprint."""
    system = Composed(pieces=[data], name="system", is_system=True)
    contents = Contents(partitions=[system], definition=b"", arch=processor)
    return write(path, contents).fingerprint


@cache
def squashfs_of(*files: LayerFile, compression: str = "zstd") -> bytes:
    """Pack the squashfs of these files."""
    with tempfile.TemporaryDirectory() as folder:
        how = PackOptions(compression=compression, log=Path(folder, "log"))
        return pack_files(files, {}, Path(folder, "new"), how).read_bytes()
