"""tools/install-apptainer: missing programs, refused users, and its single decisions.

Nothing here installs: it is run with --check, or as an ordinary user, or with nothing to do.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import conftest

from .conftest import PathWithout, run

SCRIPT = "tools/install-apptainer"
ENGINES = ("apptainer", "singularity")
NOBODY = 65534
ORDINARY_USER = NOBODY if os.geteuid() == 0 else None


@pytest.fixture
def shared_path() -> Iterator[PathWithout]:
    """Make a path_without that an ordinary user can read, too."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield PathWithout(Path(folder) / "bin")


def as_ordinary_user(path: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Pass the script by stdin: the checkout may lie where an ordinary user cannot read."""
    command, text = ("/bin/bash", "-s", "--", *arguments), Path(SCRIPT).resolve().read_text()
    return conftest.run(command, input=text, env={"PATH": path}, cwd="/", user=ORDINARY_USER)


def call(function: str, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    env = {"PATH": f"{path}:{os.environ['PATH']}"}
    return run("/bin/bash", "-c", f'. {SCRIPT}; {function} "$@"', "-", *arguments, env=env)


def program(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.unlink(missing_ok=True)
    file.write_text(f"#!/bin/bash\n{text}\n")
    file.chmod(0o755)


def test_check_lists_what_is_missing(path_without: PathWithout) -> None:
    gone = {
        "mksquashfs": "squashfs-tools",
        "squashfuse": "squashfuse",
        "fuse2fs": "fuse2fs",
        "gocryptfs": "gocryptfs",
        "newuidmap": "uidmap",
        "singularity": "the command singularity",
    }
    done = run(SCRIPT, "--check", env={"PATH": path_without(*gone)})
    assert done.returncode == 1
    assert {f"install-apptainer: missing: {text}" for text in gone.values()} <= set(
        done.stdout.splitlines()
    )


def test_check_fails_exactly_when_it_lists_something() -> None:
    done = run(SCRIPT, "--check")
    assert done.returncode == (1 if done.stdout else 0)


def test_apptainer_that_does_not_start_is_missing(path_without: PathWithout) -> None:
    path = path_without(*ENGINES)
    for engine in ENGINES:
        program(Path(path), engine, "exit 127")
    done = run(SCRIPT, "--check", env={"PATH": path})
    assert done.returncode == 1
    assert "missing: apptainer\n" in done.stdout


def test_second_run_has_nothing_to_do() -> None:
    if run(SCRIPT, "--check").returncode:
        pytest.skip("this machine lacks something, see tools/install-apptainer --check")
    done = run(SCRIPT)
    assert done.returncode == 0
    assert done.stdout.startswith("install-apptainer: nothing to do: Apptainer ")
    assert not run(SCRIPT, "--best-effort").stdout


def test_unchanged_machine_is_not_checked_again(tmp_path: Path) -> None:
    if run(SCRIPT, "--check").returncode:
        pytest.skip("this machine lacks something, see tools/install-apptainer --check")
    checked = tmp_path / "checked"
    words = ("/bin/bash", "-x", SCRIPT, "--best-effort", str(checked))
    assert "\n+ check\n" in run(*words).stderr
    state = checked.read_text()
    own = (
        "/etc/subuid",
        "/dev/fuse",
        "/etc/apptainer/apptainer.conf",
        "/opt/apptainer-libs/libc.so.6",
    )
    parts = (SCRIPT, shutil.which("apptainer"), shutil.which("mksquashfs"), *own)
    for part in parts:
        assert part
        assert f"{part} " in state or not Path(part).exists()
    assert "\n+ check\n" not in run(*words).stderr
    checked.write_text(state.replace("CapBnd:", "CapBnd: 0"))
    assert "\n+ check\n" in run(*words).stderr
    assert checked.read_text() == state


def test_a_script_in_place_of_apptainer_is_asked(tmp_path: Path) -> None:
    for answer in ("echo 1.4.0", "echo 1.4.1"):
        program(tmp_path, "apptainer", answer)
        state = call("machine_state", path=str(tmp_path)).stdout
        assert state.endswith(f"\n{answer.partition(' ')[2]}\n")


def test_ordinary_user_is_told_what_to_ask_for(shared_path: PathWithout) -> None:
    done = as_ordinary_user(shared_path(*ENGINES, "mksquashfs"))
    assert done.returncode == 1
    assert "missing: apptainer\n" in done.stderr
    assert "missing: squashfs-tools\n" in done.stderr
    assert "root is needed to install these: sudo tools/install-apptainer" in done.stderr


def test_best_effort_needs_apptainer_and_nothing_else(shared_path: PathWithout) -> None:
    path = shared_path(*ENGINES, "mksquashfs")
    assert as_ordinary_user(path, "--best-effort").returncode == 1
    program(Path(path), "apptainer", "echo 1.4.0")
    done = as_ordinary_user(path, "--best-effort")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert as_ordinary_user(path).returncode == 1


def test_machine_without_apt_is_pointed_to_its_distribution(shared_path: PathWithout) -> None:
    done = as_ordinary_user(shared_path(*ENGINES, "apt-get"))
    assert done.returncode == 1
    assert "install from your distribution what is missing (Apptainer >= 1.4)" in done.stderr


def test_unknown_argument_is_refused() -> None:
    done = run(SCRIPT, "--chek")
    assert done.returncode == 1
    assert "unknown argument '--chek'" in done.stderr


def test_mirror_is_the_first_main_one(tmp_path: Path) -> None:
    targets = (
        "Debian-Security|Debian|http://a.invalid/debian-security/",
        "Debian Backports|Debian Backports|http://b.invalid/debian/",
        "||http://never-updated.invalid/",
        "Debian|Debian|cdrom://disc/",
        "Debian|Debian|http://c.invalid/debian/",
        "Debian|Debian|http://d.invalid/debian/",
    )
    program(tmp_path, "apt-get", "printf '%s\\n' " + " ".join(f"'{line}'" for line in targets))
    done = call("machine_mirror", path=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "http://c.invalid/debian/\n")


@pytest.mark.parametrize(
    ("lines", "first"),
    [
        ("", 100000),
        ("ann:100000:65536\nbob:165536:65536", 231072),
        ("bob:4000000000:65536\nann:100000:65536\n", 4000065536),
        ("low:1000:10\n", 100000),
    ],
)
def test_range_lies_above_every_other(tmp_path: Path, lines: str, first: int) -> None:
    file = tmp_path / "subuid"
    file.write_text(lines)
    assert call("next_free_id", str(file)).stdout == f"{first}\n"


@pytest.mark.parametrize(
    ("line", "enough"),
    [("root:1:65536", True), ("0:1:65536", True), ("root:1:1000", False), ("rooty:1:65536", False)],
)
def test_root_needs_a_range_that_is_large_enough(
    tmp_path: Path, line: str, *, enough: bool
) -> None:
    file = tmp_path / "subuid"
    file.write_text(f"ann:100000:65536\n{line}")
    assert (call("has_range", str(file)).returncode == 0) is enough


def test_capabilities_are_those_both_sides_know(tmp_path: Path) -> None:
    program(tmp_path, "setpriv", "echo 'Capability bounding set: chown,sys_admin,cap_99'")
    program(
        tmp_path,
        "apptainer",
        "printf 'CAP_SYS_ADMIN:  CAP_SYS_ADMIN\\n\\t* CAP_KILL\\nCAP_CHOWN: x\\nCAP_KILL: x\\n'",
    )
    assert call("allowed_capabilities", path=str(tmp_path)).stdout == "CAP_CHOWN\nCAP_SYS_ADMIN\n"
