"""Conda environments of native installations, from a channel on loopback that is a mirror."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, run, sifwright
from tests.servers import serve_folder
from tests.system import conda_channel
from tests.system.native.project import MODULE, Project, make_project
from tests.system.native.read_only import NEEDS_STRACE, run_read_only
from tests.system.native.test_install import listing, use

if TYPE_CHECKING:
    import subprocess

CHANNEL = "https://conda.example/forge"
ENVIRONMENT = "conda/envs/pytorch"


@dataclass(frozen=True, kw_only=True)
class Conda:
    """A project whose site takes conda environments, with a mirror of the channel."""

    project: Project
    mirrors: Path

    @property
    def env(self) -> dict[str, str]:
        return os.environ | {"SIFWRIGHT_MIRRORS": str(self.mirrors)}

    def words(self, prefix: Path, *settings: str) -> tuple[str, ...]:
        values = (
            f"conda.channel={CHANNEL}",
            f"conda.python={conda_channel.VERSION}",
            "conda.packages=compiled",
            *settings,
        )
        words = [word for value in values for word in ("--set", value)]
        words += ["--env-manager", "conda", "--prefix", str(prefix)]
        return self.project.words(*words)

    def install(self, prefix: Path, *settings: str) -> subprocess.CompletedProcess[str]:
        return sifwright(*self.words(prefix, *settings), env=self.env)


@pytest.fixture(scope="module")
def conda(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conda]:
    with make_conda(tmp_path_factory.mktemp("conda")) as conda:
        yield conda


@contextmanager
def make_conda(folder: Path) -> Iterator[Conda]:
    """Serve the channel, and make a project whose site takes conda environments."""
    conda_channel.make_channel(folder / "channel")
    project = make_project(folder)
    shutil.copytree(ROOT / "defs/layers/conda", project.folder / "defs/layers/conda")
    project.image("python-venv", "last", "run-scripts")
    with serve_folder(folder / "channel") as url:
        mirrors = folder / "mirrors.yaml"
        mirrors.write_text(f"conda:\n  {CHANNEL}: {url}\n")
        yield Conda(project=project, mirrors=mirrors)


@pytest.fixture(scope="module")
def environment(conda: Conda) -> Path:
    """Return the environment of an installation."""
    done = conda.install(conda.project.prefix)
    assert done.returncode == 0, done.stderr
    return (conda.project.prefix / "current").resolve() / ENVIRONMENT


@pytest.mark.builds("conda", by="make test-all", depth="ran on CPUs", base="host", stand_in=True)
def test_run_scripts_work_unchanged(conda: Conda, environment: Path) -> None:
    start = f"source {conda.project.prefix}/current/bin/activate"
    last = environment.parents[2] / "last"
    assert use(start) == [str(environment), str(last), f"DEFAULT_MODULE='{MODULE}'"]
    assert (environment / "share/prefix").read_text() == f"this environment is {environment}\n"


def where_compiled(environment: Path) -> str:
    """Return the path that a compiled package has in place of the one of its build."""
    program = "import compiled; print(compiled.prefix())"
    return run([environment / "bin/python", "-c", program]).stdout.strip()


def test_both_formats_of_packages_and_a_compiled_one(environment: Path) -> None:
    assert where_compiled(environment) == str(environment)
    files = [json.loads(x.read_text())["fn"] for x in environment.glob("conda-meta/*.json")]
    assert {Path(file).suffix for file in files} == {".bz2", ".conda"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a mount namespace")
@NEEDS_STRACE
def test_nothing_is_written_elsewhere(conda: Conda) -> None:
    with tempfile.TemporaryDirectory() as prefix:
        words = (sys.executable, "-m", "sifwright", *conda.words(Path(prefix)))
        done = run_read_only(Path(prefix), *words, env=conda.env)
        assert done.returncode == 0, done.stderr
        assert (Path(prefix, "current") / ENVIRONMENT / "conda-meta").is_dir()


def test_conda_activate_has_the_variables_and_gives_them_back(environment: Path) -> None:
    """Source these files by `conda activate`, and restore the user's values."""
    script = f"""
        export HAS_LAST=mine; export -p >before
        . {environment}/etc/conda/activate.d/sifwright.sh
        echo $HAS_LAST $SITE_WIDE
        . {environment}/etc/conda/deactivate.d/sifwright.sh
        export -p >after; diff before after
    """
    done = run(["dash", "-eu", "-c", script], cwd=environment.parent)
    last = environment.parents[2] / "last"
    assert done.stdout.split()[:2] == [str(last), "yes"], done.stderr
    assert done.returncode == 0, done.stdout


def test_an_explicit_list_makes_the_same_environment(
    conda: Conda, environment: Path, tmp_path: Path
) -> None:
    lines = (environment.parents[1] / "explicit.txt").read_text().split()
    assert all(line.startswith(f"{CHANNEL}/{conda_channel.subdir()}/") for line in lines[1:])
    done = conda.install(tmp_path / "again", f"conda.explicit={' '.join(lines[1:])}")
    assert done.returncode == 0, done.stderr
    again = (tmp_path / "again/current").resolve() / ENVIRONMENT
    places = [(path, path / "conda-meta") for path in (environment, again)]
    first, second = ([name.removeprefix(str(x)) for name in listing(y)] for x, y in places)
    assert (first, where_compiled(again)) == (second, str(again))
    done = conda.install(tmp_path / "changed", f"conda.explicit={lines[1][:-32]}{'0' * 32}")
    assert done.returncode == 6
    assert "layer 'conda'" in done.stderr
