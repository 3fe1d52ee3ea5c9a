"""A base image with a Python and no torch: the real torch is installed in this Python."""

from __future__ import annotations

import json
import os
import shutil
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
    return top


@pytest.mark.builds(
    "pytorch-wheel",
    "run-scripts",
    by="make test-slow",
    depth="ran on CPUs",
    base="base-image",
    stand_in=True,
)
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
