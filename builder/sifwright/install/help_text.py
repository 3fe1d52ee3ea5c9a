"""The texts of a module: description, whatis and help."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from sifwright.catalog.model import Site
from sifwright.install.installed_image import NAME, InstalledImage
from sifwright.launch import launch_command
from sifwright.launch.job import JobRequest, arrange_job

_WIDTH = 92
_NODES, _SCRIPT = 2, "script.py"
_MASKS = "--cpu-bind=mask_cpu:"
_MASKS_IN_LINE = 4
_ACCELERATE = "accelerate"
_SLURM = ["srun", f"--nodes={_NODES}", "--ntasks=4"]


def description(site: Site, facts: InstalledImage) -> str:
    return (
        f"{NAME} {facts.torch} ({_stack(facts)}) with Python {facts.python} in a container image"
        f" for site {site.name}."
    )


def whatis(site: Site, facts: InstalledImage) -> Iterator[str]:
    yield f"Description: {description(site, facts)}"
    yield f"Version: torch {facts.torch}, {_stack(facts)}, Python {facts.python}"
    if facts.layers:
        yield f"Layers: {', '.join(facts.layers)}"
    yield "Homepage: https://pytorch.org"


def help_lines(site: Site, facts: InstalledImage, central: str) -> Iterator[str]:
    """Yield the lines of the usage; long words such as commands are never broken."""
    yield from _wrapped(_paragraphs(site, facts, central))


def _wrapped(paragraphs: Iterable[str]) -> Iterator[str]:
    for paragraph in paragraphs:
        if paragraph.startswith("  "):
            yield paragraph
        else:
            yield from textwrap.wrap(
                paragraph, _WIDTH, break_long_words=False, break_on_hyphens=False
            ) or [""]


def missing(site: Site, facts: InstalledImage, central: str) -> Iterator[str]:
    """Yield how to get the image of an easyconfig that was written before it was built."""
    yield from _wrapped(_missing(site, facts, central))


def _missing(site: Site, facts: InstalledImage, central: str) -> Iterator[str]:
    sif, target = f"{facts.stem}.sif", f"SITE={site.name} IMAGE={facts.image}"
    yield (
        f"This easyconfig comes without its image ('{facts.image}' for site {site.name}, plan"
        f" {facts.plan[:12]}). eb needs the image under this name:"
    )
    yield f"  {sif}"
    yield "It looks beside the easyconfig and in the folders of its source path (--sourcepath)."
    if central:
        yield f"The folder of central images of site {site.name} is {central}."
    yield "To build the image, with the same commit of sifwright:"
    yield f"  make sif {target}"
    yield f"  cp build/{site.name}/{facts.image}/image.sif {sif}"
    if site.builds and site.builds.where == "elsewhere":
        yield (
            f"Users cannot build at site {site.name}: {site.builds.why}. Build on another machine,"
            " and copy the file."
        )


def _paragraphs(site: Site, facts: InstalledImage, central: str) -> Iterator[str]:
    yield description(site, facts)
    if facts.layers:
        yield f"Layers: {', '.join(facts.layers)}."
    if facts.never_built:
        yield f"No test of sifwright builds these of them: {', '.join(facts.never_built)}."
    yield ""
    yield from _running(site, facts)
    yield ""
    yield from _packages()
    # Of an image of others it is not known which plugin it has.
    if facts.plugin or (not facts.image and site.network_expect):
        yield ""
        yield from _plugin(site, facts)
    if central:
        yield ""
        yield (
            "After 'rm $SIF' and reloading the module, it takes the image of the same name in"
            f" {central}, if the centre keeps one there."
        )


def _stack(facts: InstalledImage) -> str:
    name, _, version = facts.stack.partition("-")
    return {"rocm": f"ROCm {version}", "cuda": f"CUDA {version}"}.get(name, "CPU")


def _running(site: Site, facts: InstalledImage) -> Iterator[str]:
    program = site.container_program
    yield "The variable SIF names the image, RUNSCRIPTS its run scripts. Python in the image:"
    yield f"  {program} exec $SIF conda-python-simple script.py"
    yield f"Training on {_NODES} nodes, with one rank for each GPU:"
    yield from _launched(site)
    yield "conda-python-distributed sets MASTER_ADDR, RANK, WORLD_SIZE and LOCAL_RANK of each rank;"
    if facts.image:
        others = "torchrun and accelerate are" if _has_accelerate(facts) else "torchrun is"
        yield f"{others} in the image as well, to be started once per node."


def _has_accelerate(facts: InstalledImage) -> bool:
    return any(layer.split()[0] == _ACCELERATE for layer in facts.layers)


def _launched(site: Site) -> Iterator[str]:
    """Yield the command as `sifwright jobscript` writes it; with Slurm if the site has no launcher.

    The module sets the flag for GPUs.
    """
    words = (
        launch_command.words(arrange_job(site, JobRequest(nodes=_NODES, arguments=(_SCRIPT,))))
        or _SLURM
    )
    start = " ".join(map(shlex.quote, words))
    masks = next((word.removeprefix(_MASKS) for word in words if word.startswith(_MASKS)), "")
    if masks:
        yield from _in_variable(masks.split(","))
        start = start.replace(masks, "$masks")
    whole = f"{start} {site.container_program} exec $SIF conda-python-distributed {_SCRIPT}"
    *lines, last = textwrap.wrap(
        whole, _WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent="  "
    )
    yield from (f"  {line} \\" for line in lines)
    yield f"  {last}"


def _in_variable(masks: Sequence[str]) -> Iterator[str]:
    """Set the variable `masks`: all of them in one word are longer than a line."""
    before = ""
    for number in range(0, len(masks), _MASKS_IN_LINE):
        yield f"  masks={before}{','.join(masks[number : number + _MASKS_IN_LINE])}"
        before = "$masks,"


def _packages() -> Iterator[str]:
    yield "Packages of your own go on top of those of the image, into a virtual environment:"
    yield "  pytorch-pip install PACKAGE"
    yield (
        "They are in CONTAINERROOT/user-software. Where that is read-only, set"
        " SIFWRIGHT_USER_SOFTWARE to a folder of your own before loading the module."
    )
    yield "  make-squashfs      makes one file of them, faster on Lustre; unmake-squashfs undoes it"
    yield "  list-packages      what is there; start-shell opens a shell in the container"


def _plugin(site: Site, facts: InstalledImage) -> Iterator[str]:
    plugin = f"the plugin {facts.plugin}".rstrip()
    yield (
        f"Between nodes, NCCL or RCCL uses {plugin} of the image for the site's"
        f" network ({site.fabric}). If jobs on several nodes fail or are slow after a change of the"
        " system's software:"
    )
    yield "  SIFWRIGHT_DEBUG=1  set for the job shows which network each rank has taken"
    yield f"  sifwright check-comm {site.name}  times the collectives and proves the network"
    yield "One node still works: it needs no plugin."
