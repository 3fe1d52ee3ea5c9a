"""Reads damaged copies of a SIF: python -m tests.system.apptainer.damaged SIF COUNT.

Prints how often there was which exit status, and the last line of each traceback.
"""

from __future__ import annotations

import json
import random
import sys
import traceback
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from sifwright.cli.main import main
from sifwright.images.sif import sif_file

__all__: list[str] = []


def _spoilt(data: bytes, start: int, chance: random.Random) -> bytes:
    """Copy a file, with other bits in the tables of a squashfs, or with its end cut off."""
    if chance.random() < 0.2:
        return data[: chance.randrange(len(data))]
    copy = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        superblock, tables = range(start, start + 96), range(len(data) - 6000, len(data))
        copy[chance.choice([*superblock, *tables])] ^= 1 << chance.randrange(8)
    return bytes(copy)


def _status(words: list[str]) -> str:
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        try:
            return str(main(words))
        except Exception:  # noqa: BLE001  # none may come out
            return traceback.format_exc().splitlines()[-1]


def _look(good: Path, count: int) -> Counter[str]:
    chance = random.Random(3)  # noqa: S311  # repeatable, not secret
    data, start = good.read_bytes(), sif_file.partitions(good)[0].offset
    bad, result = good.with_name("bad.sif"), Counter[str]()
    for _ in range(count):
        bad.write_bytes(_spoilt(data, start, chance))
        result[_status(["inspect", str(bad), "--json"])] += 1
        result[_status(["diff", str(bad), str(good)])] += 1
        if not Path("/dev/stdout").is_symlink():
            result["/dev/stdout is gone"] += 1
            Path("/dev/stdout").unlink(missing_ok=True)
            Path("/dev/stdout").symlink_to("/proc/self/fd/1")
    return result


print(json.dumps(_look(Path(sys.argv[1]), int(sys.argv[2]))))  # noqa: T201
