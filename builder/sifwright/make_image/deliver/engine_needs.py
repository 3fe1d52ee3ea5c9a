"""Look for the parts of an image that an engine needs, before a delivery is written."""

from collections.abc import Iterator
from pathlib import Path

from sifwright.catalog.model import Site
from sifwright.errors import Problem
from sifwright.images.contents.layer_stack import LayerStack, topmost
from sifwright.images.model import ARCHITECTURES
from sifwright.images.sif import sif_file
from sifwright.images.sif.format import architecture_of

_ENVIRONMENT = ".singularity.d/actions/exec"
# The Container Engine's NCCL plugin opens this name, which CUDA's wheels and small images lack:
# eth-cscs/cscs-docs, docs/software/container-engine/known-issue.md.
_CUDA = "libcudart.so"


def image_problems(site: Site, sif: Path) -> Iterator[Problem]:
    """Yield reasons why an engine of the site cannot start the image; raise `UsageError`."""
    processor = architecture_of(sif_file.read(sif).header.arch) or "unknown"
    wanted = ARCHITECTURES.get(site.processor, site.processor)
    if processor != wanted:
        message = f"the image is for {processor}, and site '{site.name}' has {wanted}"
        yield Problem(where=str(sif), what=message, fix="Build it for this site.")
    if topmost(sif, _ENVIRONMENT.encode()) is None:
        message = f"it has no /{_ENVIRONMENT}, which sets its environment in other engines"
        yield Problem(where=str(sif), what=message, fix="Build it with Apptainer or sifwright.")


def image_notes(site: Site, sif: Path) -> Iterator[str]:
    """Yield parts of an engine that do not work in the image; raise `UsageError`."""
    if site.container_product != "container-engine" or site.vendor != "nvidia":
        return
    if not any(path.rpartition(b"/")[2] == _CUDA.encode() for path in LayerStack.of(sif).tree):
        yield (
            f"the image has no {_CUDA} without a number: the Container Engine's own NCCL plugin"
            " does not load in it"
        )
