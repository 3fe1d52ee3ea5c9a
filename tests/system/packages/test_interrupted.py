"""Killed at any moment, on a full disk, read-only: what there was stays; the next run finishes."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.system.packages.installations import IMPORT, UNPACKED, loaded, make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.system.packages.installations import Installation

pytestmark = pytest.mark.image
MOMENTS = 5
COMMANDS = ("make-squashfs", "unmake-squashfs")
USER = f"sifwright-p{os.getpid()}"


def kill_after(installation: Installation, seconds: float, *words: object) -> None:
    """Kill the whole process group at once, as a scheduler does."""
    with installation.start(*(str(word) for word in words)) as process:
        time.sleep(seconds)
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def seconds_of(installation: Installation, command: str) -> float:
    start = time.monotonic()
    installation.good(command)
    return time.monotonic() - start


@pytest.mark.all
@pytest.mark.parametrize("same", [True, False])
def test_killed_at_any_moment(filled: Installation, *, same: bool) -> None:
    """Run the same command then, or the other one: it ends in the state of its name."""
    for killed, other in (COMMANDS, COMMANDS[::-1]):
        filled.good(other)
        duration = seconds_of(filled, killed)
        rerun = killed if same else other
        for moment in range(MOMENTS):
            filled.good(other)
            kill_after(filled, duration * (moment + 0.5) / MOMENTS, killed)
            assert filled.good("pytorch-python", "-c", IMPORT).startswith("1.0 "), moment
            filled.good(rerun)
            assert (filled.current() == UNPACKED) == (rerun == "unmake-squashfs")
            assert filled.good("pytorch-python", "-c", IMPORT).startswith("1.0 "), moment
    filled.good("unmake-squashfs")
    assert filled.beside() == {"user-software", "user-software.current"}
    assert {path.name for path in filled.software.iterdir()} == {"venv"}


STEPS = [
    ("make-squashfs", "swap"),
    ("make-squashfs", "point_to"),
    ("make-squashfs", "empty_folder"),
    ("unmake-squashfs", "extract"),
    ("unmake-squashfs", "fill_folder"),
    ("unmake-squashfs", "point_to"),
]
KILL_AROUND = """
eval "$(declare -f {step} | sed '1s/.*/original ()/')"
{step}() {{ {before} original "$@"; kill -9 $$; }}
main "$@"
"""


@pytest.mark.parametrize(
    "before",
    ["kill -9 $$;", pytest.param("", marks=pytest.mark.all)],
    ids=["before", "after"],
)
@pytest.mark.parametrize(("command", "step"), STEPS, ids=["-".join(step) for step in STEPS])
def test_killed_at_a_step(filled: Installation, command: str, step: str, before: str) -> None:
    """Kill at the very step, which a clock does not hit."""
    if command == "unmake-squashfs":
        filled.good("make-squashfs")
    script = filled.root / "bin" / command
    broken = script.with_name("broken")
    text = script.read_text()
    broken.write_text(text.replace('\nmain "$@"', KILL_AROUND.format(step=step, before=before)))
    broken.chmod(0o755)
    assert filled.run("broken").returncode == -signal.SIGKILL
    assert filled.good("pytorch-python", "-c", IMPORT).startswith("1.0 ")
    filled.good(command)
    assert filled.good("pytorch-python", "-c", IMPORT).startswith("1.0 ")
    squashed = {"user-software.squashfs"} if command == "make-squashfs" else set()
    assert filled.beside() == {"user-software", "user-software.current"} | squashed


@pytest.mark.all
def test_the_first_installation_killed_at_any_moment(
    installation: Installation, wheel: Path, tmp_path: Path
) -> None:
    own = installation.having(TMPDIR=str(tmp_path))
    for moment in range(5):
        kill_after(own, 0.4 * moment, "pytorch-pip", "install", wheel)
        environment = installation.software / "venv" / "pytorch"
        assert not environment.exists() or (environment / "pip.conf").exists()
    installation.good("pytorch-pip", "install", wheel)
    assert installation.good("pytorch-python", "-c", IMPORT).startswith("1.0 ")
    assert {path.name for path in installation.software.iterdir()} == {"venv"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small disk"
    folder.mkdir()
    if run(["mount", "-t", "tmpfs", "-o", "size=6M", "tmpfs", folder]).returncode:
        pytest.skip("mounting a file system needs root")
    try:
        yield folder
    finally:
        run(["umount", "--lazy", folder])


def test_a_full_disk_changes_nothing(
    installation: Installation, wheel: Path, small_disk: Path
) -> None:
    own = installation.having(SIFWRIGHT_USER_SOFTWARE=str(small_disk))
    own.good("pytorch-pip", "install", wheel)
    data = own.software / "venv" / "data"
    data.write_bytes(os.urandom(4 << 20))
    done = own.run("make-squashfs")
    assert done.returncode == 1
    assert "was not packed and is as before" in done.stderr
    assert own.current() == UNPACKED
    assert own.beside() == {"user-software", "user-software.current"}
    assert own.good("pytorch-python", "-c", IMPORT).startswith("1.0 ")
    data.write_bytes(os.urandom(1 << 20))
    own.good("make-squashfs")
    (small_disk / "filler").write_bytes(os.urandom(4 << 20))
    done = own.run("unmake-squashfs")
    assert "was not unpacked and is as before" in done.stderr
    assert own.good("pytorch-python", "-c", IMPORT).startswith("1.0 ")


# --- as an ordinary user -----------------------------------------------------------------------


@pytest.fixture
def user() -> Iterator[dict[str, object]]:
    """Return the words that run a command as a user made for this test."""
    if os.geteuid() != 0:
        pytest.skip("making a user needs root; as a user, every other test is this one")
    done = run(["useradd", "--create-home", "--shell", "/bin/bash", USER])
    assert done.returncode == 0, done.stderr
    try:
        yield {"user": USER, "group": USER, "extra_groups": []}
    finally:
        run(["userdel", "--remove", USER])


@pytest.fixture
def home(user: dict[str, object]) -> Path:
    assert user
    return Path(pwd.getpwnam(USER).pw_dir)


def test_an_ordinary_user_on_a_central_installation(
    installation: Installation, user: dict[str, object], home: Path, image: Path
) -> None:
    """Install into a folder of the user, as the installation is root's."""
    central = home / "central"
    shutil.copytree(installation.root, central, symlinks=True)
    (central / image.name).unlink()
    shutil.copy(image, central / image.name)
    wheel = make_wheel(home / "wheels")
    env = {"HOME": str(home), "USER": USER, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    of_user = type(installation)(root=central, env=env | {"PIP_NO_INDEX": "1"})
    settings = user | {"cwd": home}
    done = of_user.run("pytorch-pip", "install", wheel, **settings)
    assert done.returncode == 1
    assert "set SIFWRIGHT_USER_SOFTWARE to a folder of yours" in done.stderr
    assert of_user.run("make-squashfs", **settings).returncode == 1
    own = of_user.having(SIFWRIGHT_USER_SOFTWARE=f"{home}/my own/pytorch")
    own.good("pytorch-pip", "install", wheel, **settings)
    assert own.good("pytorch-python", "-c", IMPORT, **settings).startswith("1.0 ")
    own.good("make-squashfs", **settings)
    assert own.good("pytorch-python", "-c", IMPORT, **settings).startswith("1.0 ")
    with_module = loaded(own)
    done = run(
        ["apptainer", "exec", central / image.name, "python", "-c", IMPORT],
        env=with_module.env,
        **settings,
    )
    assert (done.stdout[:4], done.stderr) == ("1.0 ", "")
    own.good("unmake-squashfs", **settings)
    own.good("pytorch-pip", "uninstall", "-y", "toy", **settings)
    assert not (home / ".local").exists()
    assert not (home / ".cache").exists()
