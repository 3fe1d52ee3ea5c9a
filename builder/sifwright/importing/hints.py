"""What is said about a recipe beside what it does: metadata, places that do not last, torch."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from sifwright.importing import copies, spython_recipe, targets

if TYPE_CHECKING:
    from sifwright.importing.draft import Draft
    from sifwright.importing.findings import Findings
    from sifwright.importing.instructions import Instruction

    Words = list[str] | str

__all__ = ["metadata", "places", "renewed", "runscript", "torch"]

_HARMLESS = {
    "EXPOSE": "ports are those of the machine",
    "VOLUME": "folders are bound when the image is started (--bind)",
    "STOPSIGNAL": "jobs are ended by the scheduler",
    "HEALTHCHECK": "nothing asks for it; 'sifwright test' runs test.sh",
}
# A command, and what it does first of what has to do with its lists; not a file or a package.
_APT = re.compile(
    r"(?<![\w./-])(?:/usr/bin/)?apt(?:-get)?(?![\w./-])[^;&|]*?"
    r"\b(update|install|upgrade|dist-upgrade|full-upgrade|build-dep|source|download)\b(?!-)"
)
_TORCH = re.compile(
    r"\b(pip3?|uv|conda|mamba|micromamba)\b[^\n]*?[\s\"'](torch|pytorch)(?=[\s\"'=<>~!\[;&]|$)"
)


def metadata(
    listed: list[Instruction], draft: Draft, findings: Findings, folder: str, base: list[str]
) -> None:
    """Carry ENTRYPOINT and CMD as a script, in WORKDIR; say what becomes of the rest.

    `base` is the ENTRYPOINT of what it starts from, which holds for a CMD alone: even an empty one
    of the recipe takes its place.
    """
    chosen = [item for item in listed if item.name in spython_recipe.METADATA]
    found = spython_recipe.metadata((item.name, item.text) for item in chosen)
    for item in listed:
        if item.name in _HARMLESS:
            findings.note(item.line, f"{item.name} is not carried: {_HARMLESS[item.name]}")
    draft.remarks += [f"LABEL {label}" for label in found.labels]
    draft.description = _described(found.labels)
    shown = {item.name: item for item in chosen}
    if "ENTRYPOINT" in shown or "CMD" in shown:
        _check_place([*shown.values()][-1].line, folder, found.entrypoint, found.command, findings)
        own = _program(found.entrypoint, shown.get("ENTRYPOINT"))
        entry = own if "ENTRYPOINT" in shown else base
        command = _program(found.command, shown.get("CMD"))
        draft.runscript = runscript(entry, command, folder)


def _check_place(line: int, folder: str, entry: Words, command: Words, findings: Findings) -> None:
    """What starts the image must be there then."""
    programs = [one[0] for one in (entry, command) if isinstance(one, list) and one]
    for path in (folder, *programs):
        if copies.own_places(path) and path not in copies.MACHINE_PLACES:
            what = f"the image would start in, or with, {path}, which {targets.GONE}"
            findings.refuse(line, what, "Put it into another folder, such as /opt.")


def _program(found: list[str] | str, item: Instruction | None) -> list[str] | str:
    """The words, or the text as it stands: spython takes quotes off a text."""
    return found if isinstance(found, list) or item is None else item.text


def runscript(entry: list[str] | str, command: list[str] | str, folder: str) -> str:
    """The script that does what `docker run` does with its further words."""
    lines = ["#!/bin/sh", *([f"cd {shlex.quote(folder)} || exit"] if folder else [])]
    if isinstance(entry, str) and entry:
        return "\n".join([*lines, f"exec /bin/sh -c {shlex.quote(entry)}", ""])
    words_ = command if isinstance(command, list) else ["/bin/sh", "-c", command] * bool(command)
    if words_:
        lines.append(f'[ "$#" -gt 0 ] || set -- {shlex.join(words_)}')
    start = f"{shlex.join(entry)} " if entry else ""
    return "\n".join([*lines, f'exec {start}"$@"', ""])


def _described(labels: tuple[str, ...]) -> str:
    for label in labels:
        match = re.search(r'(?:^|[\s.])description=(?:"([^"\\]+)"|(\S+))', label)
        if match:
            return match[1] or match[2]
    return ""


def places(text: str) -> frozenset[str]:
    """What a command leaves to a later one, or takes from an earlier one, and no step keeps."""
    found = {"tmp"} if any(place in text for place in copies.MACHINE_PLACES) else set()
    if _APT.search(text):
        found.add("apt")
    return frozenset(found)


def renewed(text: str) -> frozenset[str]:
    """Those of these places that a command makes anew before it takes anything."""
    match = _APT.search(text)
    return frozenset({"apt"} if match and match[1] == "update" else ())


def torch(text: str) -> bool:
    """Whether a command installs torch."""
    return _TORCH.search(text) is not None
