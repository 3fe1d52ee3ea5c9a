"""The few files of an image that say what it is, put together from its layers.

For each other path, a layer keeps a number of 8 bytes: an image of 10 GB has 200,000 paths. Images
are made by others, so what is kept of them, and how long links are followed, has limits.
"""

from __future__ import annotations

import json
import posixpath
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sifwright.errors import ErrorWithFix

_Value = TypeVar("_Value", str, bytes)
# The kernel's limit of links (ELOOP), and a depth that no path has (PATH_MAX allows 2048).
_MOST_LINKS, _DEEPEST = 40, 1024
# In bytes, as limits.h has it (PATH_MAX).
LONGEST_PATH = 4096
# Python's memory for a name in a dict, and the limit for an image: half a million links.
_ENTRY_BYTES, _MOST_BYTES = 250, 256 << 20
# Bytes of the files that are read: some libraries of 2 to 20 MB.
_MOST_READ = 256 << 20
# Bytes of paths that are looked up while links are followed: some seconds.
_MOST_LOOKED_UP = 1 << 30


class BadImage(ErrorWithFix):
    """An image that cannot be read; the text does not name it."""


@dataclass(slots=True)
class ReadBudget:
    """The bytes of memory that are left for what is kept of an image."""

    left: int = _MOST_BYTES

    def take(self, *kept: str | bytes) -> None:
        """Count something that is kept; raises `BadImage` when there is no room."""
        self.left -= _ENTRY_BYTES + sum(map(len, kept))
        if self.left < 0:
            most = f"{_MOST_BYTES >> 20} MiB"
            raise BadImage(f"its names, links and descriptions take more than {most} of memory")


@dataclass(slots=True)
class ScanBudget:
    """The bytes of files that may still be read in all layers of an image."""

    left: int = _MOST_READ

    def take(self, size: int) -> None:
        """Count a file that is read; raises `BadImage` when there are too many bytes."""
        self.left -= size
        if self.left < 0:
            raise BadImage(f"its libraries have more than {_MOST_READ >> 20} MiB")


def inside(name: str) -> str:
    """Return a path without a slash in front; raise `BadImage` if no image can have that path."""
    if len(name) > LONGEST_PATH:
        raise BadImage(f"it has a path of {len(name)} bytes, which no program can name")
    path = posixpath.normpath(name.lstrip("/") or ".")
    if path == ".." or path.startswith("../"):
        raise BadImage(f"it has a path that leads outside: {name[:80]!r}")
    return "" if path == "." else path


@dataclass(kw_only=True, slots=True)
class LayerContents:
    """Paths of one layer. `files` has the files of `files_to_read`, with their kept parts.

    `hard`: further names of files. `gone`: whiteouts; `opaque`: folders of which the layers below
    show nothing. `others` and `folders` have the `hash` of every path that is none or is one.
    Several layers that are kept at the same time share their `room`; all of an image share `scan`.
    """

    room: ReadBudget = field(default_factory=ReadBudget)
    scan: ScanBudget = field(default_factory=ScanBudget)

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    hard: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    opaque: set[str] = field(default_factory=set)
    others: array[int] = field(default_factory=lambda: array("q"))
    folders: array[int] = field(default_factory=lambda: array("q"))

    def keep(self, path: str, data: bytes) -> None:
        """Keep what is wanted of a file."""
        self.room.take(path, data)
        self.files[path] = data

    def link(self, path: str, target: str) -> None:
        """Keep a symbolic link, if it is one that leads anywhere."""
        if len(target) <= LONGEST_PATH:
            self.room.take(path, target)
            self.links[path] = target


def resolve_links(path: str, link: Callable[[str], str | None]) -> str:
    """Return the path behind all links, or ''; `link` returns the target of a link, or None."""
    rest, done, links = _parts(path), list[str](), 0
    while rest and len(done) <= _DEEPEST and len(rest) <= _MOST_LINKS * _DEEPEST:
        part = rest.pop()
        if part == "..":
            done[-1:] = []
            continue
        done.append(part)
        target = link("/".join(done))
        if target is None:
            continue
        links += 1
        if links > _MOST_LINKS:
            return ""
        done = [] if target.startswith("/") else done[:-1]
        rest += _parts(target)
    return "" if rest else "/".join(done)


class ImageTree:
    """Paths of the image, without a slash in front."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        # All paths that were ever kept, and the folders that they are in, by their hash.
        self._known: dict[int, str] = {}
        # The entries of each folder among these paths.
        self._inside: dict[str, set[str]] = {}
        self._room, self._looked_up = ReadBudget(), 0

    def real(self, path: str) -> str:
        """Return the path behind all links, as the image's programs see it, or ''."""
        return resolve_links(path, self._target)

    def _target(self, path: str) -> str | None:
        self._looked_up += len(path) + _ENTRY_BYTES
        if self._looked_up > _MOST_LOOKED_UP:
            raise BadImage("its links lead through more folders than an image can have")
        return self.links.get(path)

    def text(self, path: str) -> str | None:
        """Return the kept part of the file that a path leads to, or None."""
        data = self.files.get(self.real(path))
        return None if data is None else data.decode("utf-8", "replace")

    def json(self, path: str) -> dict[str, Any]:
        """Return the JSON object in the file that a path leads to, or {}."""
        try:
            value = json.loads(self.text(path) or "{}")
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def add_layer(self, layer: LayerContents) -> None:
        """Put another layer on top."""
        for path in layer.gone:
            self._remove(self._placed(path))
        for path in layer.opaque:
            self._remove_below(self._placed(path))
        self._replace(layer)
        for path, target in sorted(layer.links.items()):
            self._add(self.links, path, target)
        for path, text in layer.files.items():
            self._add(self.files, path, text)
        for path, first in layer.hard.items():
            if (data := self.files.get(self.real(first))) is not None:
                self._add(self.files, path, data)

    def _replace(self, layer: LayerContents) -> None:
        """Remove the nodes that a new path hides: a file hides a folder with all in it."""
        for numbers, remove in ((layer.others, self._remove), (layer.folders, self._remove_one)):
            for number in numbers:
                if path := self._known.get(number):
                    remove(path)

    def _add(self, where: dict[str, _Value], path: str, value: _Value) -> None:
        path = self._placed(path)
        if not path:
            return
        self._remove_one(path)
        where[path] = value
        self._room.take(path, value)
        while path:
            self._known[hash(path)] = path
            siblings = self._inside.setdefault(posixpath.dirname(path), set())
            if path in siblings:
                break
            self._room.take(path)
            siblings.add(path)
            path = posixpath.dirname(path)

    def _placed(self, path: str) -> str:
        """Return the path with its folder's links resolved, which a layer below may have made."""
        folder, name = posixpath.split(path)
        return posixpath.join(self.real(folder), name)

    def _remove(self, path: str) -> None:
        self._remove_one(path)
        self._remove_below(path)

    def _remove_one(self, path: str) -> None:
        self.files.pop(path, None)
        self.links.pop(path, None)

    def _remove_below(self, path: str) -> None:
        folders = [path]
        while folders:
            for name in self._inside.pop(folders.pop(), ()):
                self._remove_one(name)
                folders.append(name)


def stacked(layers: Iterable[LayerContents]) -> ImageTree:
    """Return the tree of these layers, the lowest first."""
    tree = ImageTree()
    for layer in layers:
        tree.add_layer(layer)
    return tree


def _parts(path: str) -> list[str]:
    """Return the names of a path, the last first."""
    return [part for part in reversed(path.split("/")) if part not in {"", "."}]
