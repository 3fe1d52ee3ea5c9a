"""Docker Engine, podman's service and the OCI registry of Debian, started on loopback."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.waiting import LIMIT_SECONDS, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Podman raises limits by default, which needs a capability (CAP_SYS_RESOURCE) that root may lack.
LIMITS = '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n'
COPIES = "tmp"
END_WITH_US = ("setpriv", "--pdeathsig", "TERM", "--")  # tests that are killed leave none
REGISTRY = """version: 0.1
storage:
  filesystem:
    rootdirectory: {folder}/data
  delete:
    enabled: true
http:
  addr: 127.0.0.1:0
"""


@contextmanager
def _running(
    command: Sequence[str], log: Path, ready: Callable[[], object], **env: str
) -> Iterator[None]:
    """Run a server until the end of the block; it is asked to end, by its id."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*END_WITH_US, *command],
            stdout=file,
            stderr=file,
            stdin=subprocess.DEVNULL,
            env=os.environ | env,
        )
    try:
        up = wait_for(lambda: process.poll() is not None or ready())
        assert up
        assert process.poll() is None, log.read_text(errors="replace")
        yield
    finally:
        process.terminate()
        process.wait(timeout=LIMIT_SECONDS)


def _answers(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(folder)) == 0


@contextmanager
def docker_engine(folder: Path, *options: str) -> Iterator[str]:
    """Start Docker Engine without networks of its own; yield the address of its socket.

    Builds and containers take `--network host`.
    """
    # A socket's path has at most 107 letters, and folders of tests are deep.
    with TemporaryDirectory(prefix="run-", dir="/tmp", ignore_cleanup_errors=True) as run:
        path = Path(run, "docker.sock")
        command = ["dockerd", "--iptables=false", "--bridge=none", "--host", f"unix://{path}"]
        command += ["--data-root", str(folder / "data"), "--exec-root", f"{run}/exec"]
        command += ["--pidfile", str(folder / "pid"), *options]
        with _running(command, folder / "log", lambda: _answers(path)):
            yield f"unix://{path}"
        _unmounted(Path(run, "exec/netns/default"))
        # Mounts of an engine that was ended while a container ran.
        _unmounted(folder / "data")


@contextmanager
def podman_service(folder: Path) -> Iterator[str]:
    """Start podman's Docker-compatible service; yield the address of its socket.

    Its temporary files are in the folder `COPIES` beside the socket.
    """
    path, settings = folder / "podman.sock", folder / "containers.conf"
    (folder / COPIES).mkdir()
    settings.write_text(LIMITS)
    # Podman takes 50 letters, and folders of tests have more.
    with TemporaryDirectory(prefix="run-", dir="/tmp", ignore_cleanup_errors=True) as run:
        command = ["podman", "--root", str(folder / "root"), "--runroot", run]
        command += ["system", "service", "--time=0", f"unix://{path}"]
        env = {"CONTAINERS_CONF": str(settings), "TMPDIR": str(folder / COPIES)}
        with _running(command, folder / "log", lambda: _answers(path), **env):
            yield f"unix://{path}"
    _unmounted(folder / "root/overlay")


def _unmounted(folder: Path) -> None:
    """Unmount the file systems that an engine leaves at its end; nobody could remove them."""
    subprocess.run(["/bin/umount", folder], check=False, capture_output=True)


@contextmanager
def registry(folder: Path) -> Iterator[str]:
    """Start the registry of Debian's docker-registry, without TLS; yield its host and port."""
    settings, log = folder / "registry.yaml", folder / "log"
    settings.write_text(REGISTRY.format(folder=folder))
    with _running(["docker-registry", "serve", str(settings)], log, lambda: _listening(log)):
        yield _listening(log)


def _listening(log: Path) -> str:
    """Return the address at which a registry listens, by its log, or nothing yet."""
    match = re.search(r"listening on ([\d.]+:\d+)", log.read_text())
    return match[1] if match else ""
