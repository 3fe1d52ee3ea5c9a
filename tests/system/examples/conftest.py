"""Fixtures of the tests that run the examples in the real image."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests import stacks
from tests.conftest import ROOT, run
from tests.servers import free_port
from tests.waiting import LIMIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TORCHRUN = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


@dataclass
class Container:
    """A container of the image: /examples is the checkout's, /mnt an empty folder."""

    words: list[str]
    workdir: Path
    processes: ExitStack = field(default_factory=ExitStack)

    def run(self, *command: object) -> subprocess.CompletedProcess[str]:
        return run([*self.words, *command], timeout=LIMIT_SECONDS, env=clean_environment())

    def start(self, *command: object, **environment: object) -> subprocess.Popen[str]:
        """Start it in the background; the fixture ends it if the test has not."""
        words = [*self.words, *map(str, command)]
        variables = clean_environment() | {
            f"APPTAINERENV_{name}": str(value) for name, value in environment.items()
        }
        pipe = subprocess.PIPE
        process = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=variables)
        self.processes.enter_context(ended(process))
        return process

    def start_ranks(self, size: int, *command: object) -> list[subprocess.Popen[str]]:
        """Start one container per rank, as a launcher would, told apart by the environment."""
        meet = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        sizes = {"WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
        return [
            self.start(*command, **meet, **sizes, RANK=rank, LOCAL_RANK=rank)
            for rank in range(size)
        ]


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in TORCHRUN}


@contextmanager
def ended(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Leave no process and no open pipe behind, however the test ended."""
    with process:
        try:
            yield
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)


@contextmanager
def opened(engine: str, sif: Path, folder: Path) -> Iterator[Container]:
    workdir = folder / "work"
    workdir.mkdir()
    binds = ["--bind", f"{ROOT}/examples:/examples:ro", "--bind", f"{workdir}:/mnt"]
    words = [engine, "--quiet", "exec", "--containall", "--no-home", *binds]
    words += ["--pwd", "/mnt", str(sif)]
    container = Container(words=words, workdir=workdir)
    with container.processes:
        yield container


@pytest.fixture
def container(engine: str, image: Path, tmp_path: Path) -> Iterator[Container]:
    with opened(engine, image, tmp_path) as container:
        yield container


@pytest.fixture
def with_horovod(engine: str, image: Path, tmp_path: Path) -> Iterator[Container]:
    with opened(engine, stacks.mpich(image), tmp_path) as container:
        yield container
