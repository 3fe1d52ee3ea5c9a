"""Damaged images: each look is refused by name, or right, and starts no program."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from sifwright.cli.main import main
from sifwright.images.sif import sif_file
from tests.system.apptainer.squashed import packed
from tests.unit.sifs import write_sif

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 300


def spoilt(data: bytes, start: int, chance: random.Random) -> bytes:
    """Copy a file, with other bits in the tables of a squashfs, or with its end cut off."""
    if chance.random() < 0.2:
        return data[: chance.randrange(len(data))]
    copy = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        superblock, tables = range(start, start + 96), range(len(data) - 6000, len(data))
        copy[chance.choice([*superblock, *tables])] ^= 1 << chance.randrange(8)
    return bytes(copy)


def test_every_look_is_refused_or_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no program, which might remove names from /dev if root runs it."""
    script = "mkdir -p etc bin; echo ID=x >etc/os-release; seq 9 >bin/python3.11; ln -s x lib"
    whole = packed(tmp_path, f"{script}; seq 40 | xargs touch", "tree", "gzip")
    good, bad = tmp_path / "good.sif", tmp_path / "bad.sif"
    write_sif(good, whole.read_bytes())
    data, start = good.read_bytes(), sif_file.partitions(good)[0].offset
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a program is started"))
    chance = random.Random(3)  # noqa: S311  # repeatable, not secret
    statuses = Counter[int]()
    for _ in range(COUNT):
        bad.write_bytes(spoilt(data, start, chance))
        for words in (["inspect", str(bad), "--json"], ["diff", str(bad), str(good)]):
            statuses[main(words)] += 1
    assert set(statuses) <= {0, 1, 2}
    assert statuses[2] > COUNT // 2
