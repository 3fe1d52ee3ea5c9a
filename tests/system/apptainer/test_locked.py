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
from tests.system.apptainer.toys import succeeded

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.build


@pytest.mark.usefixtures("engine")
def test_a_bundle_is_enough_for_the_same_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_project(tmp_path, venv=("base-debian", "python-venv"))
    project, output = ["--project", tmp_path], ["--output", tmp_path / "build"]
    succeeded(sifwright(*project, "lock", "local", "venv", *output))
    succeeded(sifwright(*project, "bundle", "local", "venv", "-o", tmp_path / "b.tar"))

    # Nothing but the bundle, and no way out.
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    alone = ["unshare", "--net"] if os.geteuid() == 0 else []
    alone += [sys.executable, "-m", "sifwright"]
    build = [*alone, *project, "build", "local", "venv", *output, "--offline", "--bundle"]
    succeeded(run([*build, tmp_path / "b.tar"]))
    image = tmp_path / "build" / "local" / "venv" / "image.sif"
    names = {package.name for package in installed(LayerStack.of(image))}
    assert {"python3-venv", "pip"} <= names

    # The cache in place of the bundle; another folder, umask and, where that can be, day.
    command = [*project, "verify", image, "--rebuild"]
    faked = ["faketime", "2030-01-02"] if shutil.which("faketime") else []
    again = succeeded(run([*faked, *alone[-3:], *command], preexec_fn=lambda: os.umask(0o077)))
    assert "gives the same bytes" in again.stdout

    (tmp_path / "b.tar").write_bytes((tmp_path / "b.tar").read_bytes()[: -(1 << 20)])
    before = image.resolve()
    refused = run([*build, tmp_path / "b.tar", "--force"])
    assert refused.returncode == 6
    assert "it lacks" in refused.stderr or "damaged" in refused.stderr
    assert image.resolve() == before
