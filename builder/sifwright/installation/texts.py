"""What a module says of itself: description, whatis and help."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING

from sifwright.installation.facts import NAME
from sifwright.job import Request, arrange
from sifwright.render import launch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.installation.facts import ImageFacts
    from sifwright.model import Site

__all__ = ["description", "help_lines", "whatis"]

_WIDTH = 92
_NODES, _SCRIPT = 2, "script.py"
_MASKS = "--cpu-bind=mask_cpu"
_SLURM = ["srun", f"--nodes={_NODES}", "--ntasks=4"]


def description(site: Site, facts: ImageFacts) -> str:
    return (
        f"{NAME} {facts.torch} ({_stack(facts)}) with Python {facts.python} in a container image"
        f" for site {site.name}."
    )


def whatis(site: Site, facts: ImageFacts) -> Iterator[str]:
    yield f"Description: {description(site, facts)}"
    yield f"Version: torch {facts.torch}, {_stack(facts)}, Python {facts.python}"
    if facts.layers:
        yield f"Layers: {', '.join(facts.layers)}"
    yield "Homepage: https://pytorch.org"


def help_lines(site: Site, facts: ImageFacts) -> Iterator[str]:
    """How to use it; long words such as commands are never broken."""
    for paragraph in _paragraphs(site, facts):
        if paragraph.startswith("  "):
            yield paragraph
        else:
            yield from textwrap.wrap(
                paragraph, _WIDTH, break_long_words=False, break_on_hyphens=False
            ) or [""]


def _paragraphs(site: Site, facts: ImageFacts) -> Iterator[str]:
    yield description(site, facts)
    if facts.layers:
        yield f"Layers: {', '.join(facts.layers)}."
    yield ""
    yield from _running(site, facts)
    yield ""
    yield from _packages()
    # Of an image of others it is not known which plugin it has.
    if facts.plugin or (not facts.image and site.network_expect):
        yield ""
        yield from _plugin(site, facts)


def _stack(facts: ImageFacts) -> str:
    name, _, version = facts.stack.partition("-")
    return {"rocm": f"ROCm {version}", "cuda": f"CUDA {version}"}.get(name, "CPU")


def _running(site: Site, facts: ImageFacts) -> Iterator[str]:
    program = site.container_program
    yield "The variable SIF names the image, RUNSCRIPTS its run scripts. Python in the image:"
    yield f"  {program} exec $SIF conda-python-simple script.py"
    yield f"Training on {_NODES} nodes, with one rank for each GPU:"
    yield from _launched(site)
    yield "conda-python-distributed sets MASTER_ADDR, RANK, WORLD_SIZE and LOCAL_RANK of each rank;"
    if facts.image:
        yield "torchrun and accelerate are in the image as well, to be started once per node."


def _launched(site: Site) -> Iterator[str]:
    """As `sifwright jobscript` starts it, but for the long masks of CPUs; with Slurm if with none.

    The flag for GPUs is the module's.
    """
    words = launch.words(arrange(site, Request(nodes=_NODES, arguments=(_SCRIPT,)))) or _SLURM
    start = " ".join(shlex.quote(word) for word in words if not word.startswith(_MASKS))
    whole = f"{start} {site.container_program} exec $SIF conda-python-distributed {_SCRIPT}"
    *lines, last = textwrap.wrap(
        whole, _WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent="  "
    )
    yield from (f"  {line} \\" for line in lines)
    yield f"  {last}"


def _packages() -> Iterator[str]:
    yield "Packages of your own go on top of those of the image, into a virtual environment:"
    yield "  pytorch-pip install PACKAGE"
    yield (
        "They are in CONTAINERROOT/user-software. Where that is read-only, set"
        " SIFWRIGHT_USER_SOFTWARE to a folder of your own before loading the module."
    )
    yield "  make-squashfs      makes one file of them, faster on Lustre; unmake-squashfs undoes it"
    yield "  list-packages      what is there; start-shell opens a shell in the container"


def _plugin(site: Site, facts: ImageFacts) -> Iterator[str]:
    plugin = f"the plugin {facts.plugin}".rstrip()
    yield (
        f"Between nodes, NCCL or RCCL uses {plugin} of the image for the site's"
        f" network ({site.fabric}). If jobs on several nodes fail or are slow after a change of the"
        " system's software:"
    )
    yield "  SIFWRIGHT_DEBUG=1  set for the job shows which network each rank has taken"
    yield f"  sifwright check-comm {site.name}  times the collectives and proves the network"
    yield "One node still works: it needs no plugin."
    yield (
        "After 'rm $SIF' and reloading the module, the site's central image is used, if there is"
        " one; centres replace it when the system changes."
    )
