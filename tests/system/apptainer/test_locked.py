"""A locked build from a bundle, on a machine without a network, is the image that was locked."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from sifwright.images.contents.layer_stack import LayerStack
from sifwright.images.contents.packages import installed
from tests.checkouts import copy_project
from tests.conftest import run, sifwright

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.build


def test_a_bundle_is_enough_for_the_same_image(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_project(tmp_path, venv=("base-debian", "python-venv"))
    project, output = ["--project", tmp_path], ["--output", tmp_path / "build"]
    locked = sifwright(*project, "lock", "local", "venv", *output)
    assert locked.returncode == 0, f"{engine}: {locked.stdout}{locked.stderr}"
    bundled = sifwright(*project, "bundle", "local", "venv", "-o", tmp_path / "b.tar")
    assert bundled.returncode == 0, bundled.stderr

    # Nothing but the bundle, and no way out.
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    alone = ["unshare", "--net"] if os.geteuid() == 0 else []
    alone += [sys.executable, "-m", "sifwright"]
    build = [*alone, *project, "build", "local", "venv", *output, "--offline", "--bundle"]
    built = run([*build, tmp_path / "b.tar"])
    assert built.returncode == 0, built.stdout + built.stderr
    image = tmp_path / "build" / "local" / "venv" / "image.sif"
    names = {package.name for package in installed(LayerStack.of(image))}
    assert {"python3-venv", "pip"} <= names

    # The cache in place of the bundle; another folder, umask and, where that can be, day.
    command = [*project, "verify", image, "--rebuild"]
    faked = ["faketime", "2030-01-02"] if shutil.which("faketime") else []
    again = run([*faked, *alone[-3:], *command], preexec_fn=lambda: os.umask(0o077))
    assert again.returncode == 0, again.stdout + again.stderr
    assert "gives the same bytes" in again.stdout

    (tmp_path / "b.tar").write_bytes((tmp_path / "b.tar").read_bytes()[: -(1 << 20)])
    before = image.resolve()
    refused = run([*build, tmp_path / "b.tar", "--force"])
    assert refused.returncode == 6
    assert "it lacks" in refused.stderr or "damaged" in refused.stderr
    assert image.resolve() == before
