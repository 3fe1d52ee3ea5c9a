"""The image of site local, installed with EasyBuild and without, loaded and run."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, sifwright
from tests.spread import spread
from tests.system.easybuild.easybuild import EasyBuild
from tests.system.easybuild.tools import NEEDS_BOTH, TOOLS, Session
from tests.system.packages.installations import IMPORT, VENV, make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.easybuild.tools import Tool

pytestmark = [pytest.mark.image, NEEDS_BOTH]
LMOD_LUA = TOOLS[0]
USERNS = "--userns" if os.geteuid() == 0 else ""
SEEN = "lib/python3.11/site-packages/toy.py"
TRAIN = """import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
unit = torch.ones(1)
dist.all_reduce(unit)
line = f"rank {os.environ['RANK']} of {int(unit)} {os.environ['SIFWRIGHT_MODULE']}"
os.write(1, line.encode() + bytes([10]))  # in one piece
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def config(image: Path) -> Path:
    """Write the .eb of the image beside it, as a hard link, so that the file has two names."""
    done = sifwright("easyconfig", "local", "pytorch")
    assert done.returncode == 0, done.stderr
    (path,) = (image.parent / "easybuild").glob("*.eb")
    assert f"easyconfig: build/local/pytorch/easybuild/{path.name}" in done.stdout
    return path


def _runs(session: Session, command: str) -> list[str]:
    """Return the lines that a command in the container prints, sorted."""
    script = f'module load PyTorch; singularity exec {USERNS} --bind "$PWD" "$SIF" {command}'
    done = session.run(script)
    assert done.returncode == 0, done.stderr
    noise = [line for line in done.stderr.splitlines() if "INFO" in line or "WARNING" in line]
    assert not noise
    return sorted(done.stdout.splitlines())


def _installed(folder: Path, tool: Tool) -> Session:
    """Return the settings of an installation in the folder, with its modulefile."""
    modules = folder / "modules"
    target = modules / "PyTorch" / f"now{tool.ending}"
    options = ["--root", folder / "my pytorch", "--install", "--write", target]
    done = sifwright("modulefile", "local", "--format", tool.syntax, *options)
    assert done.returncode == 0, done.stderr
    return Session(tool=tool, modulepath=modules)


def test_easybuild_installs_one_copy_that_runs(image: Path, config: Path, tmp_path: Path) -> None:
    sif = config.with_suffix(".sif")
    assert sif.samefile(image)
    assert not sif.is_symlink()
    # A second name of the image keeps the known facts valid.
    assert sifwright("build", "local", "pytorch", timeout=240).returncode == 0
    easybuild = EasyBuild(prefix=tmp_path / "eb")
    root = easybuild.install(config)
    notes = {entry.name for entry in (root / "share/sifwright").iterdir()}
    assert {"record.json", "pytorch.def", "licences.txt"} <= notes
    assert "python\ttorch\t2.13.0+cpu\t" in (root / "share/sifwright/licences.txt").read_text()
    session = Session(tool=LMOD_LUA, modulepath=easybuild.modules)
    (easybuild.modules / "train.py").write_text(TRAIN)
    ranks = _runs(session, "conda-python-distributed --nproc-per-node 2 train.py")
    assert ranks == [f"rank {rank} of 2 PyTorch/{root.name}" for rank in (0, 1)]


@pytest.mark.parametrize("tool", spread(TOOLS, [LMOD_LUA]), ids=[tool.name for tool in TOOLS])
@pytest.mark.usefixtures("image")
def test_packages_under_a_loaded_module(tmp_path: Path, tool: Tool) -> None:
    """Install, pack and unpack while it is loaded; unloading leaves nothing of it."""
    session = _installed(tmp_path, tool)
    wheel = make_wheel(tmp_path / "wheels")
    seen = f'singularity exec {USERNS} "$SIF" python -c "{IMPORT}" >>seen 2>&1'
    script = f"""module load PyTorch
        pytorch-pip install --no-index '{wheel}' && {seen}
        make-squashfs && {seen}
        unmake-squashfs && {seen}
        make-squashfs
        module unload PyTorch"""
    before, loaded, *_, last, after = session.states(script)
    assert (session.modulepath / "seen").read_text() == 3 * f"1.0 {VENV}/{SEEN}\n"
    assert (last, after) == (loaded, before)


@pytest.mark.all
@pytest.mark.parametrize("tool", TOOLS, ids=[tool.name for tool in TOOLS])
@pytest.mark.usefixtures("image")
def test_the_first_packages_in_a_folder_of_ones_own(tmp_path: Path, tool: Tool) -> None:
    """Follow the advice of pytorch-pip alone; Environment Modules does not load a module twice."""
    session = _installed(tmp_path, tool)
    wheel = make_wheel(tmp_path / "wheels")
    script = f"""module load PyTorch
        pytorch-pip install --no-index '{wheel}'
        module unload PyTorch; module load PyTorch
        pytorch-pip install --no-index '{make_wheel(tmp_path / "wheels", "second")}'
        singularity exec {USERNS} "$SIF" python -c '{IMPORT}'"""
    done = session.run(script, SIFWRIGHT_USER_SOFTWARE=str(tmp_path / "own"))
    assert done.stdout.splitlines()[-1:] == [f"1.0 {VENV}/{SEEN}"], done.stderr
    assert done.stderr.count("unload the module and load it again") == 1


@pytest.mark.parametrize("tool", spread(TOOLS, [LMOD_LUA]), ids=[tool.name for tool in TOOLS])
def test_modulefile_without_easybuild(config: Path, tmp_path: Path, tool: Tool) -> None:
    session, root = _installed(tmp_path, tool), tmp_path / "my pytorch"
    assert (root / config.with_suffix(".sif").name).samefile(config.with_suffix(".sif"))
    (root / "user-software/mine").touch()
    _installed(tmp_path, tool)
    assert (root / "user-software/mine").exists()
    assert not list(root.glob(".sifwright*"))
    print_version = "conda-python-simple -c 'import torch; print(torch.__version__)'"
    assert _runs(session, print_version) == ["2.13.0+cpu"]


def test_an_image_of_others_is_the_same(image: Path, config: Path, tmp_path: Path) -> None:
    """Compare the facts read from the SIF with its record."""
    shutil.copy(image, tmp_path / "other.sif")
    words = ["--from", tmp_path / "other.sif", "--output", tmp_path / "build"]
    done = sifwright("easyconfig", "local", *words)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "build").rglob("*.eb")
    of_other, of_ours = path.read_text().splitlines(), config.read_text().splitlines()
    different = [line for line, other in zip(of_other, of_ours, strict=True) if line != other]
    # The archive has another record.
    assert len(different) == 1, different


@pytest.mark.parametrize("harm", spread(["sif", "record", "plan", "definition"], ["sif"]))
def test_an_image_that_is_not_what_its_record_says_is_refused(
    image: Path, tmp_path: Path, harm: str
) -> None:
    folder = tmp_path / "build/local/pytorch"
    shutil.copytree(image.parent, folder, symlinks=True, ignore=shutil.ignore_patterns("easybuild"))
    record = json.loads((folder / "record.json").read_text())
    words = []
    if harm == "sif":
        with (folder / record["sif"]).open("r+b") as file:
            file.seek(record["sif_bytes"] // 2)
            file.write(b"damaged")
    elif harm == "record":
        (folder / "record.json").write_text("{")
    elif harm == "definition":
        (folder / "recipe" / "pytorch.def").write_text("another")
    else:
        words = ["--set", "pytorch-wheel.version=2.12.0"]
    options = ["--output", tmp_path / "build", "--project", ROOT]
    done = sifwright(*options[2:], "easyconfig", "local", *words, *options[:2])
    assert (done.returncode, done.stdout) == (2, "")
    assert "sifwright build local pytorch" in done.stderr
    assert not (folder / "easybuild").exists()
