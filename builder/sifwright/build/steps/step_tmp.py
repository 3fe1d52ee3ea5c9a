"""What a step has as /tmp and /var/tmp: empty folders of its own, gone when it has ended.

The engine shows the machine's own, in which others work; what many recipes end with is
`rm -rf /tmp/*`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.images.contents.image_tree import resolve_links
from sifwright.system.tempdirs import remove

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["clear", "made"]

_PLACES = {"tmp": "/tmp", "var-tmp": "/var/tmp"}  # noqa: S108  # of the image
_FOLDER = "step-tmp"
# Anybody writes there, and removes only what is theirs.
_MODE = 0o1777


def made(work: Path, tree: Path | None = None) -> list[str]:
    """Make them in a folder for a step, and return what the engine is to bind.

    In a `tree` only for those that are there: nothing is made in it to bind to.
    """
    return [
        f"{_made(work / _FOLDER / name)}:{place}"
        for name, place in _PLACES.items()
        if tree is None or _is_folder(tree, place)
    ]


def _is_folder(tree: Path, place: str) -> bool:
    """Whether the image has a folder there; links lead where they lead in the image."""

    def link(path: str) -> str | None:
        here = tree / path
        return str(here.readlink()) if here.is_symlink() else None

    found = resolve_links(place, link)
    return bool(found) and (tree / found).is_dir()


def clear(work: Path) -> None:
    """Remove them: what a step leaves there takes room, and its files may be anybody's."""
    remove(work / _FOLDER)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    # Not of mkdir, whose mode the umask takes from.
    folder.chmod(_MODE)
    return folder
