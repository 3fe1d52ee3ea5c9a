"""Variables of the caller that reach Python: the rows of docs/reference/run-scripts.md."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .test_environment import ONE_NODE

if TYPE_CHECKING:
    from .conftest import Runner

SHOW = "import json, os, sys; print(json.dumps([dict(os.environ), sys.path, os.getcwd()]))"
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
SCRIPT = "conda-python-simple"


def started(runner: Runner, script: str = SCRIPT, **env: str) -> tuple[dict[str, str], list[str]]:
    """Return the environment of Python, and the lines that the script printed before it."""
    result = runner.having(**env).run(script, "-c", SHOW)
    assert result.returncode == 0, result.stderr
    return dict(json.loads(result.stdout)[0]), result.stderr.splitlines()


@pytest.mark.parametrize("script", [SCRIPT, "conda-python-distributed"])
@pytest.mark.parametrize("text", ["cd /", "exit 3", "set -x; hash() { false; }"])
def test_bash_reads_no_startup_file(runner: Runner, tmp_path: Path, script: str, text: str) -> None:
    (tmp_path / "startup").write_text(f"{text}\n")
    env = {"BASH_ENV": str(tmp_path / "startup"), "BASH_FUNC_python%%": "() { exit 5; }"}
    result = runner.having(**env, TMPDIR=str(tmp_path)).run(script, "-c", SHOW)
    assert (result.returncode, result.stderr) == (0, "")
    document, _, folder = json.loads(result.stdout)
    assert folder == str(Path.cwd())
    assert document["BASH_ENV"] == env["BASH_ENV"]  # it is the program's own affair


def test_paths_that_are_not_there(runner: Runner, tmp_path: Path) -> None:
    missing = dict.fromkeys(("TMPDIR", *CERTIFICATES), "/no/such/path")
    values, (line,) = started(runner, **missing)
    assert not missing.keys() & values.keys()
    assert line == (
        "conda-python-simple: dropped, as the container has no such path: "
        + ", ".join(f"{name}='/no/such/path'" for name in missing)
        + ". Bind the path, or unset the variable"
    )
    given = dict.fromkeys(("TMPDIR", *CERTIFICATES), str(tmp_path))
    values, lines = started(runner, **given | {"SSL_CERT_DIR": f"{tmp_path}:/no/such/path"})
    assert lines == []
    assert given.items() - {("SSL_CERT_DIR", str(tmp_path))} <= values.items()


def test_one_rank_speaks_for_all(runner: Runner) -> None:
    lines = [
        line
        for rank in range(4)
        for line in started(
            runner,
            "conda-python-distributed",
            **ONE_NODE | {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)},
            TMPDIR="/no/such/path",
        )[1]
    ]
    assert len(lines) == 1


def test_packages_of_the_home_directory(runner: Runner) -> None:
    assert started(runner)[0]["PYTHONNOUSERSITE"] == "1"


def test_long_tmpdir_has_a_short_name(runner: Runner, tmp_path: Path) -> None:
    """Leave 34 letters for the socket of a DataLoader worker below the folder."""
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    values, lines = started(runner, TMPDIR=str(folder))
    short = Path(values["TMPDIR"])
    assert lines == []
    assert short.samefile(folder)
    assert values["TRITON_CACHE_DIR"].startswith(f"{short}/")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(short / ("s" * 33)))
    again, _ = started(runner, TMPDIR=str(folder))
    assert again["TMPDIR"] == str(short)
    short.unlink()


def packages(prefix: Path, version: str = "") -> str:
    """Make a folder of packages of a Python at this prefix, this one's by default."""
    version = version or os.path.basename(os.path.dirname(os.__file__))  # noqa: PTH119, PTH120
    folder = prefix / "lib" / version / "site-packages"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def test_packages_of_another_python(runner: Runner, tmp_path: Path, venv: Path) -> None:
    other = tmp_path / "other" / "bin" / "python"
    other.parent.mkdir(parents=True)
    other.touch()
    own = tmp_path / "own"
    (own / "bin").mkdir(parents=True)
    (own / "bin" / "python").symlink_to(venv / "bin" / "python")
    kept = [str(tmp_path), packages(venv), packages(own), "/no/python3.11/site-packages"]
    foreign = [packages(tmp_path / "other"), packages(tmp_path / "cray", "python3.6")]
    foreign.append(packages(own, "python2.7"))
    env = {"PYTHONPATH": ":".join([foreign[0], *kept, *foreign[1:]])}
    env["EBPYTHONPREFIXES"] = str(tmp_path / "other")
    values, (line,) = started(runner, **env)
    assert values["PYTHONPATH"] == ":".join(kept)
    assert "EBPYTHONPREFIXES" not in values
    assert f"'{':'.join([*foreign, str(tmp_path / 'other')])}'" in line
    assert "SIFWRIGHT_KEEP_PYTHONPATH=1" in line
    values, lines = started(runner, **env, SIFWRIGHT_KEEP_PYTHONPATH="1")
    assert (values["PYTHONPATH"], lines) == (env["PYTHONPATH"], [])


def test_active_environment_is_not_left_silently(
    runner: Runner, tmp_path: Path, venv: Path
) -> None:
    mine = tmp_path / "mine"
    subprocess.run([venv / "bin" / "python", "-m", "venv", "--without-pip", mine], check=True)
    active = {"VIRTUAL_ENV": str(mine), "PATH": f"{mine}/bin:{venv}/bin:/usr/bin:/bin"}
    values, (line,) = started(runner, **active)
    assert values["VIRTUAL_ENV"] == str(venv)
    assert f"the active environment '{mine}' is not used" in line
    keep = f"source {mine}/bin/activate"
    assert f"WITH_CONDA='{keep}' keeps yours" in line
    values, lines = started(runner, **active, WITH_CONDA=keep)
    assert (values["VIRTUAL_ENV"], lines) == (str(mine), [])
    # The image's own, and one of the host whose name only has come in.
    for harmless in ({"VIRTUAL_ENV": str(venv)}, {"VIRTUAL_ENV": str(mine)}):
        path = {"PATH": f"{venv}/bin:/usr/bin:/bin"}
        assert started(runner, **harmless, **path)[1] == []


def test_lock_of_a_compiler_is_named(runner: Runner, tmp_path: Path) -> None:
    lock = tmp_path / "toy" / "lock"
    lock.parent.mkdir()
    lock.touch()
    _, (line,) = started(runner, TORCH_EXTENSIONS_DIR=str(tmp_path))
    assert f"{lock} is there: torch waits" in line
