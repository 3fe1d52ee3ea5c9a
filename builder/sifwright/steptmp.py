"""What a step has as /tmp and /var/tmp: empty folders of its own, gone when it has ended.

The engine shows the machine's own, in which others work; what many recipes end with is
`rm -rf /tmp/*`.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from sifwright.workspace import remove

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["clear", "made"]

_PLACES = {"tmp": "/tmp", "var-tmp": "/var/tmp"}  # noqa: S108  # of the image
_FOLDER = "step-tmp"
# As Linux.
_MOST_LINKS = 40
# Anybody writes there, and removes only what is theirs.
_MODE = 0o1777


def made(work: Path, tree: Path | None = None) -> list[str]:
    """Make them in a folder for a step, and return what the engine is to bind.

    In a `tree` only for those that are there: nothing is made in it to bind to.
    """
    return [
        f"{_made(work / _FOLDER / name)}:{place}"
        for name, place in _PLACES.items()
        if tree is None or _is_folder(tree, PurePosixPath(place))
    ]


def _is_folder(tree: Path, place: PurePosixPath) -> bool:
    """Whether the image has a folder there; links lead where they lead in the image."""
    found = PurePosixPath("/")
    waiting, links = [*reversed(place.parts[1:])], 0
    while waiting and links < _MOST_LINKS:
        name = waiting.pop()
        found = found.parent if name == ".." else found / name
        here = tree / found.relative_to("/")
        if here.is_symlink():
            target, links = PurePosixPath(here.readlink()), links + 1
            found = PurePosixPath("/") if target.is_absolute() else found.parent
            waiting += [part for part in reversed(target.parts) if part != "/"]
    return links < _MOST_LINKS and (tree / found.relative_to("/")).is_dir()


def clear(work: Path) -> None:
    """Remove them: what a step leaves there takes room, and its files may be anybody's."""
    remove(work / _FOLDER)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    # Not of mkdir, whose mode the umask takes from.
    folder.chmod(_MODE)
    return folder
