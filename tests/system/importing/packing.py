"""Archives for ADD, made in memory."""

from __future__ import annotations

import io
import random
import tarfile

# More than a block of bzip2, so that its first entry can be read where the end is missing.
NOISE = random.Random(1).randbytes(1 << 20)  # noqa: S311  # the same each time


def tar(data: bytes, name: str = "file") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
