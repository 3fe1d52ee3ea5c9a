"""Images that others built: what is read from their files, without running anything of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import UsageError
from sifwright.install.inspect_foreign_image import inspect
from tests.conftest import run, sifwright
from tests.unit.sifs import write_sif

if TYPE_CHECKING:
    from pathlib import Path

VERSION = """__version__ = '{version}'
debug = False
cuda: Optional[str] = {cuda!r}
hip: Optional[str] = {hip!r}
"""
CUDA = VERSION.format(version="2.4.1+cu121", cuda="12.1", hip=None)
ROCM = VERSION.format(version="2.10.0+rocm7.0", cuda=None, hip="7.0.51831-abc")
CPU = VERSION.format(version="2.13.0+cpu", cuda=None, hip=None)
VENV = "opt/venv/lib/python3.11/site-packages/torch/version.py"
CONDA = "opt/conda/envs/ai/lib/python3.12/site-packages/torch/version.py"
DEBIAN = "usr/lib/python3/dist-packages/torch/version.py"
ENVIRONMENT = ".singularity.d/env/90-environment.sh"
LABELS = {
    ".singularity.d/labels.json": json.dumps(
        {"org.label-schema.build-date": "Monday_2_June_2025_15:04:05_CEST"}
    )
}


def sif_of(folder: Path, files: dict[str, str], link: str = "") -> Path:
    tree = folder / "tree"
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    if link:
        (tree / "usr/bin").mkdir(parents=True, exist_ok=True)
        (tree / "usr/bin/python3").symlink_to(link)
    packed = run(["mksquashfs", tree, folder / "tree.sqfs", "-quiet", "-no-progress", "-all-root"])
    assert packed.returncode == 0, packed.stderr
    write_sif(folder / "image.sif", (folder / "tree.sqfs").read_bytes())
    return folder / "image.sif"


def test_a_virtual_environment_with_cuda(tmp_path: Path) -> None:
    files = {VENV: CUDA, "opt/venv/bin/activate": "", **LABELS}
    findings = inspect(sif_of(tmp_path, files))
    assert (findings.torch, findings.python, findings.stack) == ("2.4.1", "3.11", "cuda-12.1")
    assert findings.with_conda == "source /opt/venv/bin/activate"
    assert findings.date == "20250602"
    assert findings.needs_site
    assert findings.stem == "PyTorch-2.4.1-cuda-12.1-python-3.11-singularity-20250602"


def test_a_conda_environment_with_rocm(tmp_path: Path) -> None:
    files = {
        CONDA: ROCM,
        "opt/conda/envs/ai/conda-meta/history": "",
        "opt/conda/bin/activate": "",
        "opt/rocm-7.0.2/.info/version": "7.0.2-56\n",
    }
    findings = inspect(sif_of(tmp_path, files))
    assert (findings.torch, findings.python, findings.stack) == ("2.10.0", "3.12", "rocm-7.0.2")
    assert findings.with_conda == "source /opt/conda/bin/activate /opt/conda/envs/ai"


def test_rocm_of_a_wheel(tmp_path: Path) -> None:
    assert inspect(sif_of(tmp_path, {VENV: ROCM})).stack == "rocm-7.0"


def test_python_of_the_system(tmp_path: Path) -> None:
    findings = inspect(sif_of(tmp_path, {DEBIAN: CPU}, link="python3.13"))
    assert (findings.python, findings.stack, findings.with_conda) == ("3.13", "cpu", "true")


def test_images_that_activate_themselves_and_know_their_site(tmp_path: Path) -> None:
    environment = "export WITH_CONDA='source /opt/x'\n"
    files = {VENV: CPU, ENVIRONMENT: environment, "etc/sifwright/site-environment": ""}
    findings = inspect(sif_of(tmp_path, files))
    assert (findings.with_conda, findings.needs_site) == ("", False)


def test_of_several_the_one_on_path(tmp_path: Path) -> None:
    files = {VENV: CPU, CONDA: ROCM, ENVIRONMENT: "export PATH=/opt/venv/bin:$PATH\n"}
    assert inspect(sif_of(tmp_path, files)).stack == "cpu"
    (tmp_path / "two").mkdir()
    with pytest.raises(UsageError, match="several, and PATH does not tell which: /opt/conda"):
        inspect(sif_of(tmp_path / "two", {VENV: CPU, CONDA: ROCM}))


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"etc/hostname": "x"}, "there is no PyTorch in it"),
        ({VENV: "cuda = None\n"}, "names no version"),
        ({DEBIAN: CPU}, "does not say which Python it is"),
        ({VENV: CUDA}, "its torch is for cuda-12.1, and site 'local' has vendor cpu"),
    ],
)
def test_images_that_cannot_be_installed_are_refused(
    tmp_path: Path, files: dict[str, str], says: str
) -> None:
    words = ["--from", sif_of(tmp_path, files), "--output", tmp_path / "build"]
    done = sifwright("easyconfig", "local", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "image.sif" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "build").exists()
