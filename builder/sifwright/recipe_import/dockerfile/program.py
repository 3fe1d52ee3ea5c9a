"""The program of an imported image: of its recipe, or of its base image."""

import contextlib
from collections.abc import Sequence

from sifwright.catalog.model import ImageStart
from sifwright.images.model import SourceError, Start
from sifwright.recipe_import import shell_words
from sifwright.recipe_import.dockerfile import copies
from sifwright.recipe_import.dockerfile.instructions import Instruction
from sifwright.recipe_import.dockerfile.starting_image import DEFAULT_SHELL, Look
from sifwright.recipe_import.draft import Draft, Findings

# Programs that an image without ENTRYPOINT and CMD starts anyway.
_SHELLS = {("bash",), ("/bin/bash",)}
_UNKNOWN = "what the image of From starts is not known, and there is no %runscript: it starts bash"


def of_dockerfile(
    listed: Sequence[Instruction], base: Start, folder: str, findings: Findings
) -> ImageStart | None:
    """Find ENTRYPOINT and CMD, of which an image below gives those that are missing.

    Its CMD goes with its own ENTRYPOINT, and even an empty ENTRYPOINT takes that one's place.
    """
    commands = _collect_commands(listed, base)
    if not commands:
        return of_base(base, "" if copies.own_places(folder) else folder)
    _, entrypoint = commands.get("ENTRYPOINT", (0, ()))
    _, cmd = commands.get("CMD", (0, ()))
    line = max(number for number, _ in commands.values())
    _check_place(line, (folder, *entrypoint[:1], *cmd[:1]), findings)
    if "ENTRYPOINT" not in commands:
        entrypoint = base.entry
    if not entrypoint and not cmd:
        return None
    return ImageStart(entrypoint=entrypoint, cmd=cmd, workdir=folder)


def _collect_commands(
    listed: Sequence[Instruction], base: Start
) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return the lines and words of ENTRYPOINT and CMD.

    The SHELL before one of them reads its text. ENTRYPOINT removes a CMD of an earlier stage.
    """
    shell, own = base.shell or DEFAULT_SHELL, set[str]()
    commands: dict[str, tuple[int, tuple[str, ...]]] = {}
    for item in listed:
        exact = shell_words.json_words(item.text)
        if item.name == "FROM":
            own = set()
        elif item.name == "SHELL":
            shell = tuple(exact or ())
        elif item.name in {"ENTRYPOINT", "CMD"}:
            if item.name == "ENTRYPOINT" and "CMD" not in own:
                commands.pop("CMD", None)
            text = (*shell, item.text) if item.text else ()
            own.add(item.name)
            commands[item.name] = (item.line, text if exact is None else tuple(exact))
    return commands


def of_base(base: Start, folder: str = "") -> ImageStart | None:
    """Give the program of an image below; none for a shell, which starts without being named."""
    if not base.entry and (not base.cmd or base.cmd in _SHELLS):
        return None
    return ImageStart(entrypoint=base.entry, cmd=base.cmd, workdir=folder)


def of_image(draft: Draft, look: Look) -> Start | None:
    """Return what the registry says of the image of a definition file, if one is asked."""
    image = draft.bootstrap.get("From", "")
    with contextlib.suppress(SourceError):
        return look(image) if image and draft.bootstrap["Bootstrap"] == "docker" else None
    return None


def of_definition(line: int, config: Start | None, findings: Findings) -> ImageStart | None:
    """Return the program of an image below, which Apptainer starts where nothing is said."""
    if config is None:
        findings.note(line, _UNKNOWN)
        return None
    return of_base(config)


def _check_place(line: int, places: Sequence[str], findings: Findings) -> None:
    """Refuse what starts the image where it would not be there then."""
    for path in places:
        if copies.own_places(path) and path not in copies.MACHINE_PLACES:
            message = f"the image would start in, or with, {path}, which {copies.GONE}"
            findings.refuse(line, message, "Put it into another folder, such as /opt.")
