"""Folders on the node's own disk."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, run

CHECK = "import os; from launch import folders; {}; folders.check_temporary(os.environ)"
RANKS = {
    "killed while it writes": "os.write = lambda *_: os._exit(9)",
    "with the number of a killed process": "os.getpid = lambda: 7",
}


@pytest.mark.parametrize("rank", RANKS.values(), ids=RANKS)
def test_killed_rank_refuses_no_later_job(tmp_path: Path, rank: str) -> None:
    (tmp_path / f".sifwright-7-{os.uname().nodename}").touch()
    command, env = (
        (sys.executable, "-c", CHECK.format(rank)),
        os.environ | {"TMPDIR": str(tmp_path)},
    )
    done = run(command, cwd=ROOT / "runscripts", env=env)
    assert done.stderr == ""
    assert len(list(tmp_path.iterdir())) == 1
