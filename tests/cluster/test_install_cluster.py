"""tools/install-cluster: what it finds missing, and what it says where it cannot help."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from tests.conftest import ROOT

SCRIPT = ROOT / "tools" / "install-cluster"
NOBODY = 65534
# What the script itself needs; nothing of a cluster is there.
NEEDED = ("bash", "sort", "env", "mktemp", "rm")


def run(path: Path, *arguments: str, user: int | None = None) -> subprocess.CompletedProcess[str]:
    """The checkout may lie where an ordinary user cannot read, so the script comes by stdin."""
    script = SCRIPT.read_text().replace("PATH=$PATH:/usr/sbin:/sbin", "")
    return subprocess.run(
        ["/bin/bash", "-s", "--", *arguments],
        input=script,
        env={"PATH": str(path)},
        cwd="/",
        user=user if os.geteuid() == 0 else None,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def programs(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(Path("/usr/bin") / name)
    return folder


def test_check_names_the_packages(tmp_path: Path) -> None:
    done = run(programs(tmp_path / "bin", *NEEDED), "--check")
    assert done.returncode == 1
    packages = "hostname iproute2 mpich munge openmpi-bin slurm-client slurmctld slurmd util-linux"
    assert done.stdout == f"install-cluster: missing: {packages}\n"


def test_check_finds_what_is_there(tmp_path: Path) -> None:
    done = run(programs(tmp_path / "bin", *NEEDED, "nsenter", "hostname"), "--check")
    assert " mpich " in done.stdout
    assert "hostname" not in done.stdout
    assert "util-linux" not in done.stdout


def test_ordinary_user_is_told_and_may_go_on() -> None:
    """`make test` of somebody without root: these tests are skipped, the others run."""
    with tempfile.TemporaryDirectory() as folder:  # not pytest's, which only we can read
        Path(folder).chmod(0o755)
        done = run(programs(Path(folder) / "bin", *NEEDED), user=NOBODY)
    assert done.returncode == 0
    assert "as root, with Debian's apt: tools/install-cluster" in done.stdout
