"""Damaged images, looked at by root: each is refused by name, and /dev stays as it was."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.system.apptainer.squashed import packed
from tests.unit.sifs import write_sif

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.all,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may remove names from /dev"),
]

# A /dev that nobody else has, for the rest of the words.
_OWN_DEV = """
mount -t tmpfs none "$1"
for name in null zero random urandom; do
  touch "$1/$name"; mount --bind "/dev/$name" "$1/$name"
done
mkdir "$1/shm"; ln -s /proc/self/fd "$1/fd"
ln -s /proc/self/fd/1 "$1/stdout"; ln -s /proc/self/fd/2 "$1/stderr"
mount --rbind "$1" /dev
"${@:2}"
"""
_COUNT = 300


def test_every_look_is_refused_or_right_and_dev_stays(tmp_path: Path) -> None:
    script = "mkdir -p etc bin; echo ID=x >etc/os-release; seq 9 >bin/python3.11; ln -s x lib"
    whole = packed(tmp_path, f"{script}; seq 40 | xargs touch", "tree", "gzip")
    write_sif(tmp_path / "good.sif", whole.read_bytes())
    (tmp_path / "dev").mkdir()
    alone = ("unshare", "--mount", "bash", "-euc", _OWN_DEV, "-", tmp_path / "dev")
    look = (sys.executable, "-m", "tests.system.apptainer.damaged", tmp_path / "good.sif", _COUNT)
    done = run([*alone, *look])
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert set(counts) <= {"0", "1", "2"}
    assert counts["2"] > _COUNT // 2
    assert sum(counts.values()) == 2 * _COUNT
