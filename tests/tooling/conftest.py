"""The set-up programs are run as a user runs them: by their real names, mostly in copies."""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import conftest

CHECKOUT = Path(__file__).resolve().parents[2]
# Words of our own for things that have a name; patterns, one a line.
BANNED_WORDS = Path(__file__).with_name("banned_words.txt").read_text().split("\n")[:-1]
# Variables of an outer `make test`: they would steer the inner make, or pytest.
FROM_OUTER_MAKE = (
    *("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PYTEST_XDIST_WORKER"),
    *("SITE", "IMAGE", "NODES", "SET", "SCRIPT", "JOB", "PYTEST", "V"),
)


def run(
    *command: str | Path, cwd: Path = CHECKOUT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in FROM_OUTER_MAKE}
    return conftest.run(command, cwd=cwd, env=environment | dict(env or {}))


@pytest.fixture
def path_without(tmp_path: Path) -> "PathWithout":
    return PathWithout(tmp_path / "bin")


class PathWithout:
    """A PATH that holds the commands of the set-up programs but some, in one folder of links."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *commands: str) -> str:
        self.folder.mkdir()
        for name, program in _programs().items():
            if name not in commands:
                (self.folder / name).symlink_to(program)
        return str(self.folder)


@functools.cache
def _programs() -> dict[str, str]:
    text = "\n".join(file.read_text() for file in CHECKOUT.glob("tools/*"))
    words = {"sh", *re.findall(r"[\w.+-]+", text)}
    return {word: program for word in words if (program := shutil.which(word))}
