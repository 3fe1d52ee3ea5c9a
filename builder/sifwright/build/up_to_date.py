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

from sifwright import __version__
from sifwright.build.request.build_request import BuildRequest
from sifwright.catalog import script_rules
from sifwright.system import fact_cache, tree_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sifwright.catalog.model import LayerFile

__all__ = ["DecisionCache", "RequestKey"]

_FILE = "orders.json"
_FORMAT = 1
_KEPT = 100
_PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestKey:
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


class DecisionCache:
    """What is known of one command, looked up before anything of the project is loaded."""

    def __init__(self, project: Path, words: RequestKey) -> None:
        self._project = project
        self._words = words
        self._state = _state(project, words)

    def order(self) -> BuildRequest | None:
        """What was decided from the same; None if that is not known."""
        if self._state is None:
            return None
        key, _ = self._state
        match fact_cache.read(_FILE).get(key):
            case [str(text), str(digest)] if digest == _seal(key, text):
                return self._order(text)
        return None

    def _order(self, text: str) -> BuildRequest | None:
        try:
            found = json.loads(text)
            for name, digest in found["included"]:
                if _included(self._project, name) != digest:
                    return None
            return BuildRequest(**found["order"])
        except (OSError, tree_digest.Unfit, ValueError, TypeError, KeyError, RecursionError):
            return None

    def remember(
        self, order: BuildRequest, included: Iterable[tuple[str, Sequence[LayerFile]]]
    ) -> None:
        """For the next command, if all is as it was before; `included` are the catalog's."""
        # What is shown may have a value of a setting in it.
        is_secret = self._words.settings and (order.notes or order.base)
        if self._state is None or is_secret or _state(self._project, self._words) != self._state:
            return
        digests = [(name, _digest(files)) for name, files in included]
        text = json.dumps({"order": asdict(order), "included": digests})
        key, _ = self._state
        known = fact_cache.read(_FILE)
        known.pop(key, None)
        newest = list(known.items())[1 - _KEPT :]
        fact_cache.write(_FILE, {**dict(newest), key: [text, _seal(key, text)]})


def _seal(key: str, text: str) -> str:
    """A disk that changes a letter leaves what can still be read."""
    return hashlib.sha256(f"{key} {text}".encode()).hexdigest()


def _state(project: Path, words: RequestKey) -> tuple[str, int] | None:
    """A digest of all that decides, and when `defs/` changed last; None where it tells too little.

    Layers include more of the project: which folders, `defs/` says.
    """
    try:
        defs = tree_digest.take(project / "defs")
        facts = [_FORMAT, *_code(), str(project), asdict(words), defs.digest]
    except (OSError, tree_digest.Unfit, RecursionError):
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
        raise tree_digest.Unfit(place)
    found = list(tree_digest.entries(str(place), f"{name}/"))
    if any(script_rules.refuse_text(entry.path) for entry in found):
        raise tree_digest.Unfit(place)
    files = (entry for entry in found if entry.kind != "folder")
    return tree_digest.digest(file for file in files if "__pycache__" not in file.path.split("/"))


def _digest(files: Iterable[LayerFile]) -> str:
    """That of the same folder, of the files that were used."""
    kinds = {True: "program", False: "file"}
    return tree_digest.digest(
        tree_digest.Entry(file.path, kinds[file.executable], file.data, 0) for file in files
    )
