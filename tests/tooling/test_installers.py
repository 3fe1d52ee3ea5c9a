"""tools/install-cluster, -modules, -containers: what they find missing, and what they say."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.conftest import ROOT

NOBODY = 65534
# What the scripts themselves need; nothing that they install is there.
NEEDED = ("bash", "sort", "env", "mktemp", "rm", "dirname")
PACKAGES = {
    "cluster": "hostname iproute2 mpich munge openmpi-bin slurm-client slurmctld slurmd util-linux",
    "containers": (
        "buildah docker-registry docker.io podman qemu-user-static skopeo squashfs-tools-ng"
    ),
}
LMOD = "/usr/share/lmod/lmod/libexec/lmod"
LIBPMIX = f"/usr/lib/{os.uname().machine}-linux-gnu/pmix2/lib/libpmix.so"


def run(
    name: str, folder: Path, *arguments: str, there: tuple[str, ...] = (), user: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Of a copy that has nothing yet, on a machine with few programs."""
    tools, programs = folder / "tools", folder / "bin"
    for place in (tools, programs):
        place.mkdir(mode=0o755)
    library = (ROOT / "tools/installing.sh").read_text()
    (tools / "installing.sh").write_text(library.replace("PATH=$PATH:/usr/sbin:/sbin", ""))
    shutil.copy(ROOT / f"tools/install-{name}", tools)
    for program in (*NEEDED, *there):
        (programs / program).symlink_to(f"/usr/bin/{program}")
    return subprocess.run(
        ["/bin/bash", tools / f"install-{name}", *arguments],
        env={"PATH": str(programs)},
        cwd="/",
        user=user if os.geteuid() == 0 else None,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.parametrize("name", PACKAGES)
def test_check_names_the_packages(tmp_path: Path, name: str) -> None:
    done = run(name, tmp_path, "--check")
    assert (done.returncode, done.stderr) == (1, "")
    named = done.stdout.removeprefix(f"install-{name}: missing: ").split()
    # Only its path says whether that library is there.
    if name == "cluster" and not os.path.exists(LIBPMIX):  # noqa: PTH110
        assert "libpmix-dev" in named
        named.remove("libpmix-dev")
    assert named == PACKAGES[name].split()


def test_check_of_modules_names_what_is_missing(tmp_path: Path) -> None:
    done = run("modules", tmp_path, "--check")
    assert (done.returncode, done.stderr) == (1, "")
    # Only its path says whether Lmod is there.
    lmod = "" if os.path.exists(LMOD) else "lmod "  # noqa: PTH110
    assert done.stdout == f"install-modules: missing: {lmod}tcl environment-modules easybuild-4.9\n"


def test_check_finds_what_is_there(tmp_path: Path) -> None:
    done = run("cluster", tmp_path, "--check", there=("nsenter", "hostname"))
    assert " mpich " in done.stdout
    assert "hostname" not in done.stdout
    assert "util-linux" not in done.stdout


@pytest.mark.parametrize(
    ("name", "tests"), [("cluster", "slurm"), ("containers", "docker"), ("modules", "easybuild")]
)
def test_ordinary_user_is_told_and_may_go_on(name: str, tests: str) -> None:
    """`make test` of somebody without root: these tests are skipped, the others run."""
    with tempfile.TemporaryDirectory() as folder:  # not pytest's, which only we can read
        Path(folder).chmod(0o755)
        done = run(name, Path(folder), user=NOBODY)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"as root, with Debian's apt: tools/install-{name}" in done.stdout
    assert f"tests/system/{tests} is skipped" in done.stdout
