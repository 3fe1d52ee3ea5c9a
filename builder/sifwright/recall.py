"""What build commands decided, remembered by the content of all that they decided it from.

The same files and the same words give the same order: the next command need not parse, resolve and
render to find out that there is nothing to do. In doubt nothing is remembered or recalled.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import __version__, memory, scripts, snapshot
from sifwright.order import Order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sifwright.model import LayerFile

__all__ = ["Recall", "Words"]

_FILE = "orders.json"
_FORMAT = 1
_KEPT = 100
_PACKAGE = str(Path(__file__).parent)


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """What the command line says that decides; settings may hold secrets.

    `extension` is the digest of what the image is an extension by: that is not under `defs/`.
    """

    site: str
    image: str
    settings: Sequence[str]
    layout: str
    tests: str
    extension: str = ""
    engine: str = ""


class Recall:
    """What is known of one command, looked up before anything of the project is loaded."""

    def __init__(self, project: Path, words: Words) -> None:
        self._project = project
        self._words = words
        self._state = _state(project, words)

    def order(self) -> Order | None:
        """What was decided from the same; None if that is not known."""
        if self._state is None:
            return None
        key, _ = self._state
        match memory.read(_FILE).get(key):
            case [str(text), str(digest)] if digest == _seal(key, text):
                return self._order(text)
        return None

    def _order(self, text: str) -> Order | None:
        try:
            found = json.loads(text)
            for name, digest in found["included"]:
                if _included(self._project, name) != digest:
                    return None
            return Order(**found["order"])
        except (OSError, snapshot.Unfit, ValueError, TypeError, KeyError, RecursionError):
            return None

    def remember(self, order: Order, included: Iterable[tuple[str, Sequence[LayerFile]]]) -> None:
        """For the next command, if all is as it was before; `included` are the catalog's."""
        # What is shown may have a value of a setting in it.
        is_secret = self._words.settings and (order.notes or order.base)
        if self._state is None or is_secret or _state(self._project, self._words) != self._state:
            return
        digests = [(name, _digest(files)) for name, files in included]
        text = json.dumps({"order": asdict(order), "included": digests})
        key, _ = self._state
        known = memory.read(_FILE)
        known.pop(key, None)
        newest = list(known.items())[1 - _KEPT :]
        memory.write(_FILE, {**dict(newest), key: [text, _seal(key, text)]})


def _seal(key: str, text: str) -> str:
    """A disk that changes a letter leaves what can still be read."""
    return hashlib.sha256(f"{key} {text}".encode()).hexdigest()


def _state(project: Path, words: Words) -> tuple[str, int] | None:
    """A digest of all that decides, and when `defs/` changed last; None where it tells too little.

    Layers include more of the project: which folders, `defs/` says.
    """
    try:
        defs = snapshot.take(project / "defs")
        facts = [_FORMAT, *_code(), str(project), asdict(words), defs.digest]
    except (OSError, snapshot.Unfit, RecursionError):
        return None
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest(), defs.changed


def _code() -> Iterator[object]:
    """What tells this program, and those that it uses, from others and from themselves later."""
    # The encoding is that of text files.
    yield from (__version__, sys.version, sys.getfilesystemencoding())
    yield sorted(_files_of_package(_PACKAGE))
    # Whatever is installed or removed there changes the folder.
    places = (path or "." for path in sys.path)
    yield [(place, os.stat(place).st_mtime_ns) for place in places if os.path.exists(place)]  # noqa: PTH110, PTH116  # strings, of which 'Path' makes others


def _files_of_package(folder: str) -> Iterator[tuple[str, int, int, int]]:
    with os.scandir(folder) as listed:
        for one in listed:
            if not one.is_dir(follow_symlinks=False):
                status = one.stat()
                yield one.path, status.st_size, status.st_mtime_ns, status.st_ctime_ns
            elif one.name != "__pycache__":
                yield from _files_of_package(one.path)


def _included(project: Path, name: str) -> str:
    """The digest of a folder that layers include, as the catalog would read it now."""
    place = project / name
    # The catalog refuses links on the way.
    if os.path.realpath(place) != os.path.join(os.path.realpath(project), name):  # noqa: PTH118  # as above
        raise snapshot.Unfit(place)
    found = list(snapshot.entries(str(place), f"{name}/"))
    if any(scripts.refuse_text(entry.path) for entry in found):
        raise snapshot.Unfit(place)
    files = (entry for entry in found if entry.kind != "folder")
    return snapshot.digest(file for file in files if "__pycache__" not in file.path.split("/"))


def _digest(files: Iterable[LayerFile]) -> str:
    """That of the same folder, of the files that were used."""
    kinds = {True: "program", False: "file"}
    return snapshot.digest(
        snapshot.Entry(file.path, kinds[file.executable], file.data, 0) for file in files
    )
