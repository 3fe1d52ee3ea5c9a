"""tools/install-test-programs: what it finds missing, and what it says."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests import conftest
from tests.conftest import ROOT

NOBODY = 65534
# Programs that the script itself needs; nothing that it installs is there.
NEEDED = ("bash", "sort", "env", "mktemp", "rm", "dirname")
PACKAGES = (
    "buildah docker-registry docker.io hostname iproute2 libpmix-dev lmod mpich munge openmpi-bin"
    " podman qemu-user-static skopeo slurm-client slurmctld slurmd squashfs-tools-ng strace tcl"
    " util-linux environment-modules easybuild-4.9"
)
# Two packages are looked for by paths; this machine may have them.
PATHS = ("/usr/lib/$HOSTTYPE-linux-gnu", "/usr/share/lmod")


def run(
    folder: Path, *arguments: str, there: tuple[str, ...] = (), user: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a copy that has nothing yet, on a machine with few programs."""
    tools, programs = folder / "tools", folder / "bin"
    for location in (tools, programs):
        location.mkdir(mode=0o755)
    text = (ROOT / "tools/install-test-programs").read_text()
    for path in PATHS:
        assert f"[{path}/" in text
        text = text.replace(f"[{path}/", f"[{folder}/")
    (tools / "install-test-programs").write_text(text.replace("PATH=$PATH:/usr/sbin:/sbin", ""))
    shutil.copy(ROOT / "tools/make-venv", tools)
    for program in (*NEEDED, *there):
        (programs / program).symlink_to(f"/usr/bin/{program}")
    command = ("/bin/bash", tools / "install-test-programs", *arguments)
    user = user if os.geteuid() == 0 else None
    return conftest.run(command, env={"PATH": str(programs)}, cwd="/", user=user)


def test_check_names_the_packages(tmp_path: Path) -> None:
    done = run(tmp_path, "--check")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == f"install-test-programs: missing: {PACKAGES}\n"


def test_check_finds_what_is_there(tmp_path: Path) -> None:
    done = run(tmp_path, "--check", there=("nsenter", "hostname"))
    assert " mpich " in done.stdout
    assert "hostname" not in done.stdout
    assert "util-linux" not in done.stdout


def test_ordinary_user_is_told_in_one_line_and_may_go_on() -> None:
    """Skip these tests in a `make test` without root, and run the others."""
    with tempfile.TemporaryDirectory() as folder:  # not pytest's, which only we can read
        Path(folder).chmod(0o755)
        done = run(Path(folder), user=NOBODY)
    assert done.returncode == 0
    (line,) = (item for item in done.stdout.splitlines() if "as root" in item)
    assert line.partition("): ")[2].partition(";")[0] == PACKAGES
    assert line.endswith("; tests of them are skipped")
