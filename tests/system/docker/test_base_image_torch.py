"""Somebody else's image with a Python and no torch: the real one is installed in that Python."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import run, sifwright
from tests.system.docker.bases import Layout, pack_system
from tests.system.docker.conftest import require

pytestmark = [pytest.mark.image, pytest.mark.slow]

ASK = "import sys, torch; print(sys.prefix, torch.__file__, torch.ones(2).sum().item())"
# Python in the image and folder of torch, by the kind of Python.
FOLDER = "lib/python3.11/site-packages"
KINDS = {
    "system": ("/usr/bin/python3", "/opt/base-image/venv"),  # PEP 668
    "venv": ("/opt/mine/bin/python", "/opt/mine"),
    "conda": ("/opt/conda/bin/python", "/opt/conda"),
}


@pytest.fixture(scope="module")
def debian(image: Path, engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a tar file of Debian with its own Python."""
    require("apptainer")
    return pack_system(image, engine, tmp_path_factory.mktemp("debian") / "system.tar")


def _more(kind: str, top: Path) -> Path:
    """Make an environment of the kind beside the system."""
    (top / "opt").mkdir(parents=True)
    if kind == "venv":
        where = top / "opt" / "mine"
        assert run(["/usr/bin/python3", "-m", "venv", where]).returncode == 0
        config = (where / "pyvenv.cfg").read_text()
        (where / "pyvenv.cfg").write_text(config.replace(str(top), ""))
    if kind == "conda":
        _conda(top / "opt" / "conda")
        libraries = top / "usr" / "lib" / "x86_64-linux-gnu"
        libraries.mkdir(parents=True)
        for library in (Path(sys.base_prefix) / "lib").glob("libpython3.11.so*"):
            shutil.copy(library, libraries)
    return top


def _conda(where: Path) -> None:
    """Copy this machine's Python and its pip, with the marks of conda."""
    standard = Path("lib", "python3.11")
    left_out = shutil.ignore_patterns("site-packages", "test", "__pycache__", "config-*", "*.a")
    shutil.copytree(sys.base_prefix / standard, where / standard, ignore=left_out)
    packages = where / FOLDER
    done = run([sys.executable, "-m", "pip", "install", "--quiet", "--target", packages, "pip"])
    assert done.returncode == 0, done.stderr
    (where / "bin").mkdir()
    shutil.copy(Path(sys.base_prefix) / "bin" / "python3.11", where / "bin")
    for name in ("python", "python3"):
        (where / "bin" / name).symlink_to("python3.11")
    # Files of conda, here those of the same Python in the image.
    (where / "include").mkdir()
    (where / "include" / "python3.11").symlink_to("/usr/include/python3.11")
    (where / "conda-meta").mkdir()
    (where / "conda-meta" / "python-3.11.7-0.json").write_text('{"name": "python"}')


@pytest.mark.parametrize("kind", KINDS)
def test_torch_is_installed_in_its_python(
    kind: str, debian: Path, engine: str, tmp_path: Path
) -> None:
    program, prefix = KINDS[kind]
    path = {"PATH": f"{program.rpartition('/')[0]}:/usr/bin:/bin"}
    copy = Path(shutil.copy(debian, tmp_path / "system.tar"))
    layout = Layout(folder=tmp_path / "oci", environment=path)
    layout.write(copy, _more(kind, tmp_path / "more"))
    words = ["build", "local", "base-image", "--output", tmp_path / "build"]
    env = {**os.environ, "SIFWRIGHT_CACHE": str(tmp_path / "steps")}
    built = sifwright(*words, "--set", f"base-image.from={layout.name}", env=env)
    assert built.returncode == 0, built.stdout + built.stderr
    folder = tmp_path / "build" / "local" / "base-image"
    base, *others = json.loads((folder / "record.json").read_text())["plan"]["steps"]
    assert [step["layer"] for step in others] == ["pytorch-wheel", "run-scripts"]
    assert base["options"]["program"]["value"] == program
    sif = folder / "image.sif"
    output = run(
        [engine, "exec", "--containall", "--no-home", sif, "conda-python-simple", "-c", ASK]
    )
    assert output.stdout.split() == [prefix, f"{prefix}/{FOLDER}/torch/__init__.py", "2.0"], output
