"""The texts of a module: description, whatis and help."""

import shlex
import textwrap
from collections.abc import Iterator, Sequence

from sifwright.catalog.model import Site
from sifwright.install.installed_image import NAME, InstalledImage
from sifwright.launch import launch_command
from sifwright.launch.job import arrange_job
from sifwright.launch.model import JobRequest
from sifwright.render.templating import template

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
    return _lines(
        "help",
        site=site,
        facts=facts,
        central=central,
        description=description(site, facts),
        nodes=_NODES,
        launched=list(_launched(site, facts)),
        has_accelerate=any(layer.split()[0] == _ACCELERATE for layer in facts.layers),
    )


def missing(site: Site, facts: InstalledImage, central: str) -> Iterator[str]:
    """Yield how to get the image of an easyconfig that was written before it was built."""
    return _lines("missing", site=site, facts=facts, central=central)


def _lines(name: str, **values: object) -> Iterator[str]:
    """Yield the lines of a template, of which commands are indented and others wrapped."""
    for line in template(f"install/templates/{name}.txt.j2").render(**values).splitlines():
        wrapped = [] if line.startswith("  ") else _wrap(line)
        yield from wrapped or [line]


def _wrap(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent
    )


def _stack(facts: InstalledImage) -> str:
    name, _, version = facts.stack.partition("-")
    return {"rocm": f"ROCm {version}", "cuda": f"CUDA {version}"}.get(name, "CPU")


def _launched(site: Site, facts: InstalledImage) -> Iterator[str]:
    """Yield the command as `sifwright jobscript` writes it; with Slurm if the site has no launcher.

    The module sets the flag for GPUs.
    """
    request = JobRequest(nodes=_NODES, arguments=(_SCRIPT,), mpi=facts.mpi)
    words = launch_command.words(arrange_job(site, request)) or _SLURM
    start = " ".join(map(shlex.quote, words))
    masks = next((word.removeprefix(_MASKS) for word in words if word.startswith(_MASKS)), "")
    if masks:
        yield from _in_variable(masks.split(","))
        start = start.replace(masks, "$masks")
    whole = f"{start} {site.container_program} exec $SIF conda-python-distributed {_SCRIPT}"
    *lines, last = _wrap(whole, "  ")
    yield from (f"  {line} \\" for line in lines)
    yield f"  {last}"


def _in_variable(masks: Sequence[str]) -> Iterator[str]:
    """Set the variable `masks`: all of them in one word are longer than a line."""
    before = ""
    for number in range(0, len(masks), _MASKS_IN_LINE):
        yield f"  masks={before}{','.join(masks[number : number + _MASKS_IN_LINE])}"
        before = "$masks,"
