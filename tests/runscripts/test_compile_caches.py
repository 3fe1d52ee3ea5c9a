"""Compile caches of torch and Triton: on the node's own disk, by user and image."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Runner

SCRIPTS = ("conda-python-simple", "conda-python-distributed")
SHOW = "import json, os; print(json.dumps(dict(os.environ)))"
NAMES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR")

pytestmark = pytest.mark.parametrize("script", SCRIPTS)


def caches(runner: Runner, script: str, **env: str) -> list[str]:
    result = runner.having(**env).run(script, "-c", SHOW)
    assert (result.returncode, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    return [document.get(name, "") for name in NAMES]


def test_they_are_private_and_kept(runner: Runner, script: str, tmp_path: Path) -> None:
    folders = caches(runner, script, TMPDIR=str(tmp_path))
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith(f"sifwright-compiled-{os.getuid()}-")
    assert folders == [f"{folder}/inductor", f"{folder}/triton", f"{folder}/extensions"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (folder / "inductor").mkdir()
    assert caches(runner, script, TMPDIR=str(tmp_path)) == folders
    assert (folder / "inductor").exists()


def test_each_image_has_its_own(runner: Runner, script: str, tmp_path: Path) -> None:
    results = {
        caches(runner, script, TMPDIR=str(tmp_path), APPTAINER_CONTAINER=f"/images/{name}")[0]
        for name in ("a.sif", "b.sif", "x" * 400, "y" + "x" * 400)
    }
    # The longest names are cut at their beginning.
    assert len(results) == len(list(tmp_path.iterdir())) == 3


def test_the_users_own_stay(runner: Runner, script: str, tmp_path: Path) -> None:
    inductor, triton, _ = caches(runner, script, TMPDIR=str(tmp_path), TRITON_CACHE_DIR="/mine")
    assert triton == "/mine"
    assert inductor.startswith(f"{tmp_path}/")
    every = dict.fromkeys(NAMES, "/mine")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert caches(runner, script, TMPDIR=str(empty), **every) == ["/mine"] * 3
    assert list(empty.iterdir()) == []


def test_caches_of_another_user_are_not_used(runner: Runner, script: str, tmp_path: Path) -> None:
    inductor, *_ = caches(runner, script, TMPDIR=str(tmp_path))
    folder, foreign = Path(inductor).parent, tmp_path / "foreign"
    folder.rename(foreign)
    folder.symlink_to(foreign)
    new = Path(caches(runner, script, TMPDIR=str(tmp_path))[0]).parent
    assert new.name.startswith(f"{folder.name}-")
    assert stat.S_IMODE(new.stat().st_mode) == 0o700
    assert list(foreign.iterdir()) == []
