"""Notes about a recipe: labels, temporary folders, torch."""

import re
from collections.abc import Iterable, Iterator

from sifwright.recipe_import.dockerfile import copies, spython_labels
from sifwright.recipe_import.dockerfile.instructions import Instruction
from sifwright.recipe_import.draft import Draft, Findings, Piece

_HARMLESS = {
    "EXPOSE": "ports are those of the machine",
    "VOLUME": "folders are bound when the image is started (--bind)",
    "STOPSIGNAL": "jobs are ended by the scheduler",
    "HEALTHCHECK": "nothing asks for it; 'sifwright test' runs test.sh",
}
# The command apt, and its first action on the package lists; not a file or a package.
_APT = re.compile(r"(?<![\w./-])(?:/usr/bin/)?apt(?:-get)?(?![\w./-])([^;&|]*)")
_APT_LISTS = re.compile(
    r"\b(update|install|upgrade|dist-upgrade|full-upgrade|build-dep|source|download)\b(?!-)"
)
_ROOT = re.compile(r"(?<![\w./-])/root(?![\w.-]|/\.cache\b)")
_HOME = re.compile(r"""(?<![\w./-])(?:~|\$HOME|\$\{HOME\})/(?!\.cache\b)""")
_DESCRIPTION = re.compile(r'(?:^|[\s.])description=(?:"([^"\\]+)"|(\S+))')
_INSTALLER = re.compile(r"\b(?:pip3?|uv|conda|mamba|micromamba)\b([^\n]*\n?)")
_TORCH = re.compile(r"[\s\"'](torch|pytorch)(?=[\s\"'=<>~!\[;&]|$)")


def metadata(listed: list[Instruction], draft: Draft, findings: Findings) -> None:
    """Keep LABEL, and note what becomes of the other metadata."""
    for item in listed:
        if item.name in _HARMLESS:
            findings.note(item.line, f"{item.name} is not carried: {_HARMLESS[item.name]}")
    labels = spython_labels.labels(item.text for item in listed if item.name == "LABEL")
    draft.remarks += [f"LABEL {label}" for label in labels]
    matches = (_DESCRIPTION.search(label) for label in labels)
    draft.description = next((match[1] or match[2] for match in matches if match), "")


def temporary_paths_used(text: str) -> frozenset[str]:
    """Return the temporary folders through which a command shares files with others."""
    used = {"tmp"} if any(path in text for path in copies.MACHINE_PLACES) else set()
    if _apt_words(text):
        used.add("apt")
    return frozenset(used)


def temporary_paths_recreated(text: str) -> frozenset[str]:
    """Return the temporary folders that a command creates before it reads them."""
    return frozenset({"apt"} if _apt_words(text)[:1] == ["update"] else ())


def _apt_words(text: str) -> list[str]:
    """Return the words of apt that have to do with its lists, in their order."""
    return [word for match in _APT.finditer(text) for word in _APT_LISTS.findall(match[1])]


def names_root(pieces: Iterable[Piece]) -> Iterator[int]:
    """Yield the lines that name root's home, but for caches there, which hold no programs."""
    listed = list(pieces)
    moved = any(rule.name == "HOME" for piece in listed for rule in piece.rules)
    for piece in listed:
        scripts = (file.data.decode(errors="replace") for file in piece.files if piece.is_run)
        text = "\n".join([*piece.code, *scripts])
        if _ROOT.search(text) or (not moved and _HOME.search(text)):
            yield piece.line


def torch(text: str) -> bool:
    """Return whether a command installs torch."""
    return any(_TORCH.search(match[1]) for match in _INSTALLER.finditer(text))
