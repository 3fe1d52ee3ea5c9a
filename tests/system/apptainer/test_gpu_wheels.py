"""Images with a GPU's PyTorch from a Python package index on Debian, imported without a GPU.

Each has the index's own build for its CUDA. The sources of libfabric and the plugin come from where
SIFWRIGHT_MIRRORS leads; without such a copy their images are skipped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.load import load_catalog
from tests.conftest import ROOT, run, sifwright
from tests.system.fabric.images import SOURCES, missing_sources, prove

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.build]
SECONDS = 7000


@dataclass(frozen=True, kw_only=True)
class Choice:
    """An image of a site; `variant` is the build of torch that it has."""

    site: str
    image: str
    variant: str
    settings: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


CHOICES = {
    "cu130": Choice(
        site="slurm-generic",
        image="pytorch-cuda-wheels",
        variant="cu130",
        settings=("pytorch-wheel.variant=cu130",),
    ),
    "cu130-slingshot": Choice(
        site="perlmutter",
        image="pytorch-cuda-wheels",
        variant="cu130",
        settings=("pytorch-wheel.version=2.13.0", "pytorch-wheel.variant=cu130"),
        sources=SOURCES,
    ),
    "cu121": Choice(site="cirrus-epcc", image="pytorch", variant="cu121"),
}
MARKS = {
    "cu130": (
        pytest.mark.builds("cuda-wheels", by="make test-slow", depth="compiled", vendor="nvidia"),
        pytest.mark.builds(
            "base-debian",
            "python-venv",
            "build-tools",
            "run-scripts",
            by="make test-slow",
            depth="imported",
            vendor="nvidia",
        ),
        pytest.mark.builds(
            "pytorch-wheel",
            "torch-extras",
            by="make test-slow",
            depth="imported",
            vendor="nvidia",
            variant="cu130",
        ),
    ),
    "cu121": (
        pytest.mark.builds(
            "pytorch-wheel",
            "torch-extras",
            by="make test-slow",
            depth="imported",
            vendor="nvidia",
            variant="cu121",
        ),
    ),
}
FACTS = """
import json, torch, torchvision
archs = torch._C._cuda_getArchFlags().split()
print(json.dumps([torch.version.cuda, [one for one in archs if one.startswith("sm_")]]))
"""


@pytest.mark.parametrize(
    "choice", [pytest.param(CHOICES[name], marks=MARKS.get(name, ()), id=name) for name in CHOICES]
)
def test_the_image_is_built_and_imported(engine: str, tmp_path: Path, choice: Choice) -> None:
    if missing := missing_sources(choice.sources):
        pytest.skip(f"SIFWRIGHT_MIRRORS names no copy of {missing}")
    words = ["build", choice.site, choice.image, "--output", tmp_path]
    words += (word for setting in choice.settings for word in ("--set", setting))
    done = sifwright(*words, timeout=SECONDS)  # the tests of the layers are in it
    assert done.returncode == 0, done.stdout + done.stderr
    image = tmp_path / choice.site / choice.image / "image.sif"
    found = run([engine, "exec", image, "conda-python-simple", "-c", FACTS])
    assert found.returncode == 0, found.stderr
    cuda, archs = json.loads(found.stdout)
    catalog = load_catalog(ROOT / "defs", ROOT)
    row, arch = catalog.versions["wheels"][choice.variant], catalog.sites[choice.site].fact("arch")
    assert (cuda,) == row["cuda"]
    assert set(archs) <= set(row["arch"])  # code for sm_86 runs on sm_89
    assert not arch or arch in archs
    if choice.sources == SOURCES:
        proved = prove(engine, image)
        assert proved.returncode == 0, proved.stdout + proved.stderr
        assert "(a) torch maps /opt/venv/lib/" in proved.stdout
    image.unlink()  # 3 GB
