from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

RUNSCRIPTS = Path(__file__).parents[2] / "runscripts"


@dataclass(frozen=True)
class Runner:
    """A runner of run scripts, with nothing in the environment but a test's values."""

    env: dict[str, str]

    def having(self, **env: str) -> Runner:
        return replace(self, env=self.env | env)

    def lacking(self, name: str) -> Runner:
        return replace(self, env={k: v for k, v in self.env.items() if k != name})

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(RUNSCRIPTS / script), *arguments]
        return subprocess.run(
            command, env=self.env, text=True, capture_output=True, timeout=240, check=False
        )

    def start(self, script: str, *arguments: str) -> subprocess.Popen[str]:
        command = [str(RUNSCRIPTS / script), *arguments]
        return subprocess.Popen(command, env=self.env, text=True, stdout=subprocess.PIPE)


@pytest.fixture(scope="session")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("image") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", path], check=True)
    return path


@pytest.fixture
def runner(venv: Path) -> Runner:
    """Run one rank alone; it does not wait for the others of its launch."""
    path = {"PATH": "/usr/bin:/bin", "WITH_CONDA": f"source {venv}/bin/activate"}
    path["TMPDIR"] = str(venv.parent)
    return Runner(path | {"SIFWRIGHT_ROLL_CALL": "0", "SIFWRIGHT_SITE_ENVIRONMENT": ""})
