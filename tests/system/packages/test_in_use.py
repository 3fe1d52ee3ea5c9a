"""Who is at work is not disturbed, and who died is not waited for."""

from __future__ import annotations

import os
import pwd
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.system.packages.installations import IMPORT, UNPACKED, make_wheel
from tests.waiting import wait_for

if TYPE_CHECKING:
    import subprocess

    from tests.system.packages.installations import Installation

pytestmark = pytest.mark.image
USER = pwd.getpwuid(os.geteuid()).pw_name
WAIT = "import toy, time; print('ready', flush=True); time.sleep(600)"


def wait_for_line(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line == "ready\n", process.stderr and process.stderr.read()


def end(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(timeout=240)


def test_a_running_python_is_in_the_way_of_both(filled: Installation) -> None:
    with filled.start("pytorch-python", "-c", WAIT) as process:
        wait_for_line(process)
        done = filled.run("make-squashfs")
        assert done.returncode == 1
        assert "is in use" in done.stderr
        assert "import toy" in done.stderr  # long lines are cut
        assert filled.current() == UNPACKED
        end(process)
    assert wait_for(lambda: filled.run("make-squashfs").returncode == 0)
    with filled.start("pytorch-python", "-c", WAIT) as process:
        wait_for_line(process)
        done = filled.run("unmake-squashfs")
        assert done.returncode == 1
        assert "is in use" in done.stderr
        assert filled.current() == "user-software.squashfs"
        assert filled.run("unmake-squashfs", "--force").returncode == 0
        end(process)
    assert filled.good("pytorch-python", "-c", IMPORT).startswith("1.0 ")


def test_force_packs_under_a_running_python(filled: Installation) -> None:
    with filled.start("pytorch-python", "-c", WAIT) as process:
        wait_for_line(process)
        assert filled.run("make-squashfs", "--force").returncode == 0
        end(process)
    assert filled.good("pytorch-python", "-c", IMPORT).startswith("1.0 ")


def test_a_process_of_the_node_in_the_folder(filled: Installation) -> None:
    with (
        (filled.software / "venv" / "open").open("w"),
        filled.start("start-shell", "true") as process,
    ):
        process.wait(timeout=240)
        done = filled.run("make-squashfs")
    assert f"process {os.getpid()}: " in done.stderr


def test_a_shell_has_a_lease_until_it_ends(filled: Installation) -> None:
    leases = Path(f"{filled.software}.leases")
    with filled.start("start-shell", "-c", "echo ready; sleep 600") as process:
        wait_for_line(process)
        (lease,) = leases.iterdir()
        assert f":{process.pid}:" in lease.name
        assert (
            f"start-shell of {USER} (process {process.pid} on" in filled.run("make-squashfs").stderr
        )
        end(process)
    assert list(leases.iterdir()) == []


def test_leases_of_the_dead_and_of_other_nodes(filled: Installation) -> None:
    leases = Path(f"{filled.software}.leases")
    leases.mkdir(exist_ok=True)
    host = Path("/proc/sys/kernel/hostname").read_text().strip()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().split("-")[0]
    dead = leases / f"{host}:{os.getpid()}:1:{boot}:alice:start-shell"
    dead.touch()
    far = leases / "nid000001:4711:1:00000000:alice:start-shell"
    far.touch()
    done = filled.run("make-squashfs")
    assert not dead.exists()
    assert done.returncode == 1
    assert "start-shell of alice (process 4711 on nid000001); if it does not run" in done.stderr
    far.unlink()
    assert filled.run("make-squashfs").returncode == 0


def test_locks_of_the_dead_and_of_other_nodes(filled: Installation) -> None:
    lock = Path(f"{filled.software}.lock")
    lock.symlink_to("nid000001:4711:1:00000000:alice:pytorch-pip")
    done = filled.run("make-squashfs")
    assert done.returncode == 1
    assert "pytorch-pip of alice (process 4711 on nid000001) is at work" in done.stderr
    lock.unlink()
    host = Path("/proc/sys/kernel/hostname").read_text().strip()
    lock.symlink_to(f"{host}:4711:1:00000000:alice:pytorch-pip")  # before the node was restarted
    assert filled.run("make-squashfs").returncode == 0
    assert not lock.is_symlink()


def test_two_first_installations_at_once(installation: Installation, tmp_path: Path) -> None:
    wheels = [make_wheel(tmp_path / "wheels", name) for name in ("one", "two", "three")]
    processes = [installation.start("pytorch-pip", "install", wheel) for wheel in wheels]
    outputs = [process.communicate(timeout=240) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    assert sum("making the virtual environment" in errors for _, errors in outputs) == 1
    script = "import one, two, three; print('all')"
    assert installation.good("pytorch-python", "-c", script) == "all\n"
    assert installation.beside() == {"user-software", "user-software.current"}


def test_pip_is_in_the_way_of_packing(filled: Installation, tmp_path: Path) -> None:
    """Hold the lock: pip waits in its question."""
    with filled.start("start-shell", "true") as process:
        process.wait(timeout=240)
    lock = Path(f"{filled.software}.lock")
    slow = tmp_path / "slow"
    (slow / "toy").mkdir(parents=True)
    started = slow / "started"
    script = f"import time\nopen({str(started)!r}, 'w').close()\ntime.sleep(600)\n"
    (slow / "setup.py").write_text(script)
    with filled.start("pytorch-pip", "install", "--no-build-isolation", slow) as process:
        # A signal before the container runs its program would be lost.
        assert wait_for(started.exists)
        assert f"pytorch-pip of {USER}" in filled.run("make-squashfs").stderr
        end(process)
    assert not lock.is_symlink()
    assert filled.run("make-squashfs").returncode == 0
