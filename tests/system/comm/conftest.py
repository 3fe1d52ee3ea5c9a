"""A site whose launcher and engine are stand-ins."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.launch.comm.nccl_log import Process
from tests.conftest import ROOT, sifwright

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

SITE = """\
description: Two nodes with a GPU each
vendor: nvidia
scheduler: slurm
launcher: srun
image: pytorch
options: {pytorch-wheel: {variant: cu126}}
node: {gpus: 1}
network: {expect: [NET/OFI, efa]}
"""
# Runs the command that follows srun's options, once.
SRUN = """\
#!/bin/bash
printf '%s\\n' "$@" >"$STAND_IN/srun"
while [[ $1 == -* ]]; do shift; done
exec "$@"
"""
# Leaves in the bound folder what collectives.py and NCCL would.
APPTAINER = """\
#!/bin/bash
case $1 in
  --version) echo 'apptainer version 1.4.5'; exit ;;
  build) echo ' --mksquashfs-args'; exit ;;
esac
for word; do [[ $word == *:/mnt ]] && folder=${word%:/mnt}; done
printf '%s\\n' "$@" >"$STAND_IN/apptainer"
cp "$STAND_IN/leaves/"* "$folder" 2>/dev/null
cat "$STAND_IN/says"
exit "$(<"$STAND_IN/status")"
"""


def row(**other: object) -> dict[str, object]:
    return {
        "operation": "all_reduce",
        "bytes": 1024,
        "iterations": 3,
        "seconds_median": 1e-5,
        "seconds_min": 1e-5,
        "algorithm_bandwidth": 0.1024,
        "bus_bandwidth": 0.1024,
        "wrong_elements": 0,
        **other,
    }


def measured(processes: Sequence[Process], *rows: Mapping[str, object]) -> dict[str, Any]:
    """Return the output of collectives.py."""
    hosts = sorted({process.host for process in processes})
    return {
        "format": 1,
        "torch": "2.13.0",
        "backend": "nccl",
        "library": "NCCL 2.27.5",
        "device": "GPU",
        "world_size": len(processes),
        "nodes": len(hosts),
        "hosts": hosts,
        "ranks": [process._asdict() for process in processes],
        "rows": list(rows) or [row(), row(bytes=2048)],
    }


@dataclass(frozen=True, kw_only=True)
class Site:
    """A project with site `two`, in an allocation of two nodes."""

    folder: Path
    missing: tuple[str, ...] = ("matplotlib",)  # a picture takes a second

    @property
    def results(self) -> Path:
        return self.folder / "build" / "two" / "pytorch"

    def leaves(self, document: object, text: str, says: str = "", status: int = 0) -> None:
        """Set the files, output and status of the benchmark."""
        (self.folder / "leaves").mkdir(exist_ok=True)
        if document is not None:
            (self.folder / "leaves" / "comm.json").write_text(json.dumps(document))
        (self.folder / "leaves" / "nccl.a.1.log").write_text(text)
        (self.folder / "says").write_text(says)
        (self.folder / "status").write_text(str(status))

    def check(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        settings = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "STAND_IN": str(self.folder),
            "SLURM_JOB_ID": "1",
            "SLURM_JOB_NUM_NODES": "2",
            **env,
        }
        options = ("--project", self.folder / "project")
        env = _outside_jobs() | settings
        command = (*options, "check-comm", "two", *words)
        return sifwright(*command, cwd=self.folder, env=env, missing=self.missing)

    def read_arguments(self, program: str) -> list[str]:
        """Return the arguments that a stand-in got."""
        return (self.folder / program).read_text().splitlines()


def _outside_jobs() -> dict[str, str]:
    jobs = ("SLURM_", "PBS_", "FLUX_")
    return {name: value for name, value in os.environ.items() if not name.startswith(jobs)}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    shutil.copytree(ROOT / "defs", tmp_path / "project" / "defs")
    (tmp_path / "project" / "runscripts").mkdir()
    (tmp_path / "project" / "defs" / "sites" / "two.yaml").write_text(SITE)
    (tmp_path / "bin").mkdir()
    for name, text in (("srun", SRUN), ("apptainer", APPTAINER)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    result = Site(folder=tmp_path)
    result.results.mkdir(parents=True)
    (result.results / "image.sif").touch()
    result.leaves(None, "")
    return result
