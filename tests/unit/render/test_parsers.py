"""Other parsers than ours read the definition files: spython's, and Apptainer's own."""

import os
import subprocess
from pathlib import Path

import pytest
from spython.main.parse.parsers import SingularityParser

from sifwright.catalog.load_catalog import load_catalog
from sifwright.catalog.model import Catalog
from sifwright.plan.model import Plan
from sifwright.plan.resolve import resolve
from sifwright.render.definition import definition
from tests.unit.conftest import MACHINE, program
from tests.unit.render.test_goldens import SAMPLE


@pytest.fixture(params=SAMPLE, ids="-".join)
def plan(request: pytest.FixtureRequest, real: Catalog) -> Plan:
    site, image = request.param
    return resolve(real, site, image, [])


@pytest.fixture
def text(plan: Plan) -> str:
    return definition(plan, MACHINE)


@pytest.mark.filterwarnings("ignore")
def test_spython(plan: Plan, text: str, tmp_path: Path) -> None:
    # It knows no other bootstrap than docker, and strips every line.
    path = tmp_path / "image.def"
    path.write_text(text.replace("debootstrap", "docker"))
    recipe = SingularityParser(str(path)).recipe["spython-base"]
    install = "\n".join(recipe.install)
    for step in plan.steps:
        script = step.layer.install.replace("debootstrap", "docker")
        lines = [line.strip() for line in script.splitlines()]
        assert "\n".join(line for line in lines if line) in install
    assert f"org.sifwright.plan {plan.id}" in recipe.labels
    assert recipe.environ
    assert recipe.cmd
    assert recipe.test


def _apptainer(text: str, folder: Path) -> str:
    """Return the answer of `apptainer build`, which looks for the agent after it has read all."""
    agent = text.split("Bootstrap: ", 1)[1].split("\n", 1)[0]
    (folder / "x.def").write_text(text.replace(f"Bootstrap: {agent}", "Bootstrap: nosuch", 1))
    command = [program("apptainer"), "build", "--fakeroot", "x.sif", "x.def"]
    # It leaves empty folders there.
    env = {**os.environ, "APPTAINER_TMPDIR": str(folder)}
    done = subprocess.run(command, cwd=folder, env=env, check=False, capture_output=True, text=True)
    assert done.returncode != 0
    return done.stderr


def test_apptainer(text: str, tmp_path: Path) -> None:
    assert "invalid build source nosuch" in _apptainer(text, tmp_path)


@pytest.mark.parametrize("data", [b"0123456\n", bytes(range(256))], ids=["text", "binary"])
def test_apptainer_reads_large_files(data: bytes, project: Path, tmp_path: Path) -> None:
    """Join sections of one name: it refuses a section of 64 KiB."""
    (project / "defs/layers/tool/files/large").write_bytes(data * (500_000 // len(data)))
    plan = resolve(load_catalog(project / "defs", project), "here", "", [])
    text = definition(plan, MACHINE)
    assert "invalid build source nosuch" in _apptainer(text, tmp_path)
    joined = text.replace("%post\n", "")
    assert "token too long" in _apptainer(joined, tmp_path), "the limit is gone: say so"


@pytest.mark.parametrize(
    ("smuggled", "complaint"),
    [
        ("  %word", "invalid section(s) specified"),
        ("echo {{ smuggled }}", "build var smuggled is not defined"),
    ],
)
def test_apptainer_refuses_what_we_refuse(
    text: str, tmp_path: Path, smuggled: str, complaint: str
) -> None:
    """Prove that the oracle of the test above can fail."""
    spoilt = text.replace("set -euo pipefail\n", f"set -euo pipefail\n{smuggled}\n", 1)
    answer = _apptainer(spoilt, tmp_path)
    assert complaint in answer
    assert "invalid build source" not in answer
