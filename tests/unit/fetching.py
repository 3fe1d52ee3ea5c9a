"""Run fetch-source as install.sh of a layer would, without a container."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from importlib import resources
from pathlib import Path

from sifwright.catalog import mirrors
from sifwright.system.netrc_file import Logins
from tests.conftest import run

PROGRAMS = resources.files("sifwright") / "render" / "templates" / "bin"
STEP = resources.files("sifwright").joinpath("render", "templates", "step.sh").read_text()
WRONG = "0" * 64


@dataclass(frozen=True, kw_only=True)
class Step:
    """The folder in which install.sh of a layer 'toy' would run."""

    folder: Path

    def fetch(
        self,
        source: str,
        *,
        rules: tuple[tuple[str, str], ...] = (),
        record: str = "",
        pip: Mapping[str, str] | None = None,
        stall_seconds: int = 60,
    ) -> subprocess.CompletedProcess[str]:
        machine, home = self.folder / "build" / "machine", self.folder / "build" / "tmp"
        for folder in (machine, home, self.folder / "work"):
            folder.mkdir(parents=True, exist_ok=True)
        results = [mirrors.MirrorRule(kind="git", source=old, target=new) for old, new in rules]
        logins = Logins()
        (machine / "mirrors").write_text("".join(_table(rules, logins)))
        settings = {name: logins.without(value) for name, value in (pip or {}).items()}
        (machine / "netrc").write_text(logins.text())
        (machine / "pins").write_text(record)
        (home / ".gitconfig").write_text(_git_settings(stall_seconds) + _git_rules(results))
        env = {
            "PATH": f"{PROGRAMS}:/usr/bin:/bin",
            "HOME": str(home),
            "SIFWRIGHT_BUILD": str(self.folder / "build"),
            "SIFWRIGHT_LAYER": "toy",
            "SIFWRIGHT_RETRY_SECONDS": "0",
            "SIFWRIGHT_STALL_SECONDS": str(stall_seconds),
            "SOURCE_THE_TOY": source,
            "NETRC": str(machine / "netrc"),
        }
        (self.folder / "build" / "bin").mkdir(exist_ok=True)
        sdist = resources.files("sifwright").joinpath("host/network/sdist.py").read_text()
        (self.folder / "build" / "bin" / "find-sdist").write_text(sdist)
        command = ["fetch-source", "the-toy", "there"]
        return run(command, cwd=self.folder / "work", env=env | settings, timeout=240)

    @property
    def left(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "work").iterdir())

    def text(self, name: str) -> str:
        return (self.folder / "work" / "there" / name).read_text()


def _git_settings(stall_seconds: int) -> str:
    """Return the settings that templates/step.sh gives git."""
    match = re.search(r"<<'GIT'.*?\n(.*?)^GIT$", STEP, re.DOTALL | re.MULTILINE)
    assert match
    return match[1].replace("lowSpeedTime = 60", f"lowSpeedTime = {stall_seconds}")


def _git_rules(rules: list[mirrors.MirrorRule]) -> str:
    text = ""
    for key, value in mirrors.git_config(rules):
        section, _, rest = key.partition(".")
        address, _, name = rest.rpartition(".")
        text += f'[{section} "{address}"]\n\t{name} = {value}\n'
    return text


def _table(rules: tuple[tuple[str, str], ...], logins: Logins) -> Iterator[str]:
    for old, new in rules:
        yield f"{old} {logins.without(new)}\n"


def refused(step: Step, done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done.stdout + done.stderr
    assert step.left == []
    assert "sifwright: pin" not in done.stdout
    assert done.stderr.startswith("fetch-source: ")
    return done.stderr


def silence(handler: BaseHTTPRequestHandler) -> None:
    """Say nothing more until the client has gone away."""
    handler.rfile.read(1)
    handler.close_connection = True
