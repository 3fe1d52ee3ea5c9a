"""The few files of an image that say what it is, put together from its layers.

Of all other paths a layer keeps a number of 8 bytes: an image of 10 GB has 200,000 paths.
"""

from __future__ import annotations

import posixpath
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Layer", "Tree", "real", "stacked"]

_Value = TypeVar("_Value", str, bytes)
# As the kernel (ELOOP), and more than any path has (PATH_MAX allows 2048).
_MOST_LINKS, _DEEPEST = 40, 1024


@dataclass(kw_only=True, slots=True)
class Layer:
    """What one layer brings. `files` are those that are wanted, with what is kept of them.

    `hard`: further names of files. `gone`: whiteouts; `opaque`: folders of which the layers below
    show nothing. `others` and `folders` have the `hash` of every path that is none or is one.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    hard: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    opaque: set[str] = field(default_factory=set)
    others: array[int] = field(default_factory=lambda: array("q"))
    folders: array[int] = field(default_factory=lambda: array("q"))


def real(path: str, link: Callable[[str], str | None]) -> str:
    """Where a path leads in an image; empty if nowhere. `link` says what a link has, or None."""
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


class Tree:
    """Paths of the image, without a slash in front."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        # All paths that were ever kept, and the folders that they are in, by their hash.
        self._known: dict[int, str] = {}
        self._parents: set[str] = set()

    def real(self, path: str) -> str:
        """Where a path leads, as the image's programs would see it; empty if nowhere."""
        return real(path, self.links.get)

    def text(self, path: str) -> str | None:
        """What is kept of the file that a path leads to; None if there is none."""
        found = self.files.get(self.real(path))
        return None if found is None else found.decode("utf-8", "replace")

    def lay(self, layer: Layer) -> None:
        """Lay another layer over it."""
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
            if (found := self.files.get(self.real(first))) is not None:
                self._add(self.files, path, found)

    def _replace(self, layer: Layer) -> None:
        """A file hides a folder and all in it; a folder hides whatever else was there."""
        for number in layer.others:
            if path := self._known.get(number):
                self._remove(path)
        for number in layer.folders:
            if path := self._known.get(number):
                self._remove_one(path)

    def _add(self, where: dict[str, _Value], path: str, value: _Value) -> None:
        path = self._placed(path)
        if not path:
            return
        self._remove_one(path)
        where[path] = value
        self._known[hash(path)] = path
        while (path := posixpath.dirname(path)) and path not in self._parents:
            self._known[hash(path)] = path
            self._parents.add(path)

    def _placed(self, path: str) -> str:
        """A path whose folder a layer below may have made a link."""
        folder, name = posixpath.split(path)
        return posixpath.join(self.real(folder), name)

    def _remove(self, path: str) -> None:
        self._remove_one(path)
        self._remove_below(path)

    def _remove_one(self, path: str) -> None:
        self.files.pop(path, None)
        self.links.pop(path, None)

    def _remove_below(self, path: str) -> None:
        if path not in self._parents and path:
            return
        start = f"{path}/" if path else ""
        for where in (self.files, self.links):
            for one in [name for name in where if name.startswith(start)]:
                self._remove_one(one)


def stacked(layers: Iterable[Layer]) -> Tree:
    """What layers come to, the lowest first."""
    tree = Tree()
    for layer in layers:
        tree.lay(layer)
    return tree


def _parts(path: str) -> list[str]:
    """The names of a path, the last first."""
    return [part for part in reversed(path.split("/")) if part not in {"", "."}]
