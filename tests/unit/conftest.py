"""The command line in this process, the real catalog, and copies of a small one to spoil."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from sifwright.catalog import mirrors
from sifwright.catalog.model import Catalog
from sifwright.cli import main
from sifwright.system import cache_folder
from tests.catalogs import REAL
from tests.checkouts import copy_project
from tests.spread import spread
from tests.unit.fetching import Step
from tests.unit.mirror_files import MirrorsFile

CHECKOUT = Path(__file__).resolve().parents[2]
GOOD = Path(__file__).parent / "good"
MACHINE = {"debian-mirror": "http://mirror.example/debian"}


@dataclass(frozen=True, kw_only=True)
class Result:
    code: int
    out: str
    err: str


class Cli(Protocol):
    def __call__(self, *arguments: str | Path) -> Result: ...


def program(name: str) -> str:
    """Return the path of a program; skip the test on a machine without it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the step cache, made as by a build."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    cache_folder.make(cache_folder.root())
    return cache_folder.root()


SHELLS = ("dash", "bash")


class Shells:
    """Real shells that run scripts, in a folder that must stay empty."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def environments(self, script: str, **before: str) -> Iterator[dict[str, bytes]]:
        """Return the environment of each shell at the end of the script."""
        for name in SHELLS:
            output = self.run(name, f"{script}\nenv -0\n", **before)
            pairs = (item.partition(b"=") for item in output.split(b"\0") if item)
            yield {key.decode(): value for key, _, value in pairs}

    def run(self, name: str, script: str, **before: str) -> bytes:
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **before}
        done = subprocess.run(
            [program(name), "-e", "/dev/stdin"],
            input=script.encode(),
            env=environment,
            cwd=self.folder,
            check=False,
            capture_output=True,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert list(self.folder.iterdir()) == [], "a value has run something"
        return done.stdout


@pytest.fixture
def shells(tmp_path: Path) -> Shells:
    return Shells(tmp_path / "empty")


@pytest.fixture(scope="session")
def real() -> Catalog:
    return REAL


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Copy the small project, to change as a test needs."""
    return shutil.copytree(GOOD, tmp_path / "project", symlinks=True)


@pytest.fixture
def step(tmp_path: Path) -> Step:
    program("curl")
    program("git")
    return Step(folder=tmp_path)


@pytest.fixture
def mirrors_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MirrorsFile:
    result = MirrorsFile(folder=tmp_path)
    monkeypatch.setenv(mirrors.VARIABLE, str(result.path))
    return result


@pytest.fixture
def real_project(tmp_path: Path) -> Path:
    """Copy `defs` and `runscripts` of the checkout."""
    return copy_project(tmp_path / "real")


@pytest.fixture
def run_cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """Run the command line here; the machine's mirror is one of the standard's example names."""
    monkeypatch.setattr(
        "sifwright.make_image.resolve_request.host_settings.values", lambda _plan: dict(MACHINE)
    )
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments: str | Path) -> Result:
        capsys.readouterr()
        try:
            code = main.main([str(word) for word in arguments])
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        captured = capsys.readouterr()
        return Result(code=code, out=captured.out, err=captured.err)

    yield run
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def clean_environment() -> dict[str, str]:
    """Return the environment for subprocesses, without variables for colours and widths."""
    decided = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONHASHSEED")
    return {name: value for name, value in os.environ.items() if name not in decided}


@pytest.fixture(params=spread(["a tenth", "all"], ["a tenth"]))
def portion(request: pytest.FixtureRequest) -> float:
    """Return the share of a test's values to try: all of them at night."""
    return 0.1 if request.param == "a tenth" else 1.0
