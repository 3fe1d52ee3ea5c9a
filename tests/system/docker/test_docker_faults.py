"""Errors of an engine: each message names what, where and what to do; older images stay."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import MachineError
from sifwright.host.engines import docker
from tests.conftest import DEFAULT_SIGNALS, run
from tests.spread import spread
from tests.system.apptainer.steps import make_root
from tests.system.docker.bases import Layout
from tests.system.docker.built_toys import SECOND, DockerToy
from tests.system.docker.daemons import docker_engine
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.build

NOBODY = 65534


def refusal(path: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DOCKER_HOST", path)
    with pytest.raises(MachineError) as caught:
        docker.find()
    return str(caught.value)


@contextmanager
def answering(folder: Path, answer: bytes) -> Iterator[str]:
    """Serve the same answer to everybody on a socket."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def address_string(self) -> str:
            return "socket"

        def log_message(self, *_: object) -> None: ...

    with ThreadingUnixStreamServer(str(folder), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"unix://{folder}"
        finally:
            server.shutdown()
            thread.join()


def test_an_old_engine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = json.dumps({"Version": "17.03.2-ce", "ApiVersion": "1.27", "Arch": "amd64"})
    with answering(tmp_path / "socket", old.encode()) as folder:
        message = refusal(folder, monkeypatch)
    assert "Docker Engine 17.03.2-ce is too old: its interface is 1.27, 1.40 is needed" in message
    assert "Install Docker Engine 19.03 or later" in message


@pytest.mark.parametrize("answer", [b"{}", b"[]", b"hello", b'{"ApiVersion": "x"}'])
def test_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    with answering(tmp_path / "socket", answer) as folder:
        message = refusal(folder, monkeypatch)
    assert message.startswith(f"{folder}: what answers there is no Docker Engine")


def test_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(f"unix://{tmp_path}/none", monkeypatch)
    assert message.startswith(f"{tmp_path}/none: there is no such socket")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead"))
    message = refusal(f"unix://{tmp_path}/dead", monkeypatch)
    assert message.startswith(f"{tmp_path}/dead: no engine answers there: ")
    assert "docker.io, podman" in message


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_user_without_permission_is_told_of_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path("/tmp", f"sifwright-test-{os.getpid()}.sock")  # reached by all
    with answering(folder, b"{}") as address:
        folder.chmod(0o600)
        os.seteuid(NOBODY)
        try:
            message = refusal(address, monkeypatch)
        finally:
            os.seteuid(0)
    folder.unlink()
    assert message.startswith(f"{folder}: this user may not use the engine's socket")
    assert "sudo usermod -aG root $USER" in message
    assert "rootless" in message


def test_another_processor_is_refused(docker_toy: DockerToy) -> None:
    (site,) = (docker_toy.folder / "defs" / "sites").iterdir()
    site.write_text(json.dumps({**json.loads(site.read_text()), "processor": "aarch64"}))
    done = docker_toy.docker()
    assert done.returncode == MachineError.exit_code
    assert "has aarch64 processors, Docker Engine" in done.stderr
    assert "Build on a machine with aarch64 processors." in done.stderr


def test_a_failure_names_the_line_and_the_image_stays(docker_toy: DockerToy) -> None:
    docker_toy.states()
    before, record = docker_toy.id(), docker_toy.record
    docker_toy.layer("second", f"{SECOND}echo about to fail\nfalse\n")
    done = docker_toy.docker()
    assert done.returncode == 6
    line = 3 + SECOND.count("\n") + 1
    assert f"layer 'second', install.sh:{line}: false (exit status 1): Docker Engine" in done.stderr
    assert "| about to fail" in done.stderr
    docker_toy.layer("second", SECOND, test="false\n")
    done = docker_toy.docker()
    assert done.returncode == 7
    assert "layer 'second', test.sh:3: false (exit status 1)" in done.stderr
    assert (docker_toy.id(), docker_toy.record) == (before, record)
    assert docker_toy.leftovers() == docker_toy.containers() == []


def started(toy: DockerToy) -> subprocess.Popen[str]:
    """Start a build whose second step does not end by itself."""
    toy.layer("second", f"{SECOND}sleep 600\n")
    program = [*DEFAULT_SIGNALS, sys.executable, "-m", "sifwright"]
    words = [*program, *toy.command("--engine", "docker")]
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True)
    assert wait_for(lambda: "second" in commands(toy))
    return process


def commands(toy: DockerToy) -> str:
    return str([container["Command"] for container in toy.api.containers()])


@pytest.mark.all
def test_a_killed_build_leaves_steps_only(docker_toy: DockerToy) -> None:
    docker_toy.states()
    before = docker_toy.id()
    process = started(docker_toy)
    process.kill()
    process.communicate(timeout=240)
    assert docker_toy.id() == before
    assert "second" in commands(docker_toy)
    docker_toy.layer("second", f"{SECOND}touch /data/new\n")
    assert docker_toy.states()["first"] == "cached"
    assert docker_toy.containers() == docker_toy.leftovers() == []
    assert docker_toy.id() != before


@pytest.mark.all
def test_a_stopped_build_takes_its_container_along(docker_toy: DockerToy) -> None:
    process = started(docker_toy)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=240)
    assert (process.returncode, "Traceback" in output) == (130, False)
    assert docker_toy.containers() == docker_toy.leftovers() == []


@pytest.mark.all
def test_an_engine_that_ends_in_the_middle(
    docker_toy: DockerToy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "engine").mkdir()
    with docker_engine(tmp_path / "engine") as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        process = started(docker_toy)
        os.kill(int((tmp_path / "engine/pid").read_text()), signal.SIGTERM)
        _, output = process.communicate(timeout=240)
    assert process.returncode == 6
    assert f"{address}: the connection to Docker Engine" in output
    assert "Traceback" not in output
    assert docker_toy.leftovers() == []


@pytest.mark.all
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
@pytest.mark.parametrize("kind", spread(["docker", "oci"], ["docker"]))
def test_a_full_disk_of_the_engine(
    docker_toy: DockerToy, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pull an image, and load one, with no room for it."""
    if kind == "oci":
        layout = Layout(folder=tmp_path / "layout").write(make_root(tmp_path / "root"))
        docker_toy.start_from("oci", layout.folder)
    folder = tmp_path / "engine"
    (folder / "data").mkdir(parents=True)
    size = ["-o", "size=12m", "tmpfs"]
    assert run(["mount", "-t", "tmpfs", *size, folder / "data"]).returncode == 0
    try:
        with docker_engine(folder) as address:
            monkeypatch.setenv("DOCKER_HOST", address)
            done = docker_toy.docker()
            assert done.returncode == MachineError.exit_code, done.stderr
            assert f"{folder}/data: the disk of Docker Engine" in done.stderr
            assert "Free space there" in done.stderr
            assert docker_toy.containers() == docker_toy.leftovers() == []
    finally:
        run(["umount", "--recursive", folder / "data"])


@pytest.mark.all
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_where_the_sif_goes(docker_toy: DockerToy) -> None:
    """Keep the old SIF if there is no room for the image that leaves the engine."""
    assert docker_toy.docker("--format", "sif").returncode == 0
    before = docker_toy.sif.read_bytes()
    docker_toy.layer("second", SECOND + "head -c 64M /dev/urandom >/data/large\n")
    assert docker_toy.docker().returncode == 0
    size = f"size={len(before) + (32 << 20)}"
    kept = docker_toy.output.rename(docker_toy.output.with_name("kept"))
    docker_toy.output.mkdir()
    assert run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", docker_toy.output]).returncode == 0
    try:
        shutil.copytree(kept, docker_toy.output, symlinks=True, dirs_exist_ok=True)
        done = docker_toy.docker("--format", "sif")
        assert done.returncode == MachineError.exit_code, done.stderr
        assert "no space left" in done.stderr.lower() or "MB are needed" in done.stderr
        assert docker_toy.sif.read_bytes() == before
        assert docker_toy.leftovers() == []
    finally:
        run(["umount", docker_toy.output])
