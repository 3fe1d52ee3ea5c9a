"""The program of an imported image: of its recipe, or of its base image."""

from collections.abc import Sequence

from sifwright.catalog.model import ImageStart
from sifwright.images.sources.model import SourceError, Start
from sifwright.recipe_import.dockerfile import copies, spython_metadata
from sifwright.recipe_import.dockerfile.instructions import Instruction
from sifwright.recipe_import.dockerfile.starting_image import Look
from sifwright.recipe_import.draft import Findings

# What an image without a program starts anyway.
_SHELLS = {("bash",), ("/bin/bash",)}
_UNKNOWN = "what the image of From starts is not known, and there is no %runscript: it starts bash"


def of_dockerfile(
    listed: Sequence[Instruction], base: Start, folder: str, findings: Findings
) -> ImageStart | None:
    """Find ENTRYPOINT and CMD, of which an image below gives those that are missing.

    Its CMD goes with its own ENTRYPOINT, and even an empty ENTRYPOINT takes that one's place.
    """
    shown = {item.name: item for item in listed if item.name in {"ENTRYPOINT", "CMD"}}
    if not shown:
        return of_base(base, "" if copies.own_places(folder) else folder)
    metadata = spython_metadata.metadata_of(listed)
    entrypoint = _words(metadata.entrypoint, shown.get("ENTRYPOINT"))
    cmd = _words(metadata.command, shown.get("CMD"))
    _check_place([*shown.values()][-1].line, (folder, *entrypoint[:1], *cmd[:1]), findings)
    if "ENTRYPOINT" not in shown:
        entrypoint = base.entry
    if not entrypoint and not cmd:
        return None
    return ImageStart(entrypoint=entrypoint, cmd=cmd, workdir=folder)


def of_base(base: Start, folder: str = "") -> ImageStart | None:
    """Give the program of an image below; none for a shell, which starts without being named."""
    if not base.entry and (not base.cmd or base.cmd in _SHELLS):
        return None
    return ImageStart(entrypoint=base.entry, cmd=base.cmd, workdir=folder)


def of_definition(line: int, image: str, look: Look, findings: Findings) -> ImageStart | None:
    """Ask for the program of an image below, which Apptainer starts where nothing is said."""
    try:
        config = look(image) if image else None
    except SourceError:
        config = None
    if config is None:
        findings.note(line, _UNKNOWN)
        return None
    return of_base(config)


def _words(program: list[str] | str, item: Instruction | None) -> tuple[str, ...]:
    """Return the words, or the text for a shell unchanged: spython removes its quotes."""
    if item is None or isinstance(program, list):
        return tuple(program)
    return ("/bin/sh", "-c", item.text) if item.text else ()


def _check_place(line: int, places: Sequence[str], findings: Findings) -> None:
    """Refuse what starts the image where it would not be there then."""
    for path in places:
        if copies.own_places(path) and path not in copies.MACHINE_PLACES:
            message = f"the image would start in, or with, {path}, which {copies.GONE}"
            findings.refuse(line, message, "Put it into another folder, such as /opt.")
