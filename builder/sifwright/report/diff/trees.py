"""Compare two trees: paths, and the contents of files of equal size, reading little."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Literal

from sifwright.images.contents.layer_stack import LayeredNode, LayerStack
from sifwright.images.contents.listing import ListedPath
from sifwright.system.terminal import escape_name

State = Literal["added", "removed", "changed"]
STATES: tuple[State, ...] = ("added", "removed", "changed")


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One path. `changes` are its differences; `bytes` is the size of the file now, or before."""

    path: bytes
    state: State
    kind: str
    bytes: int
    layer: str
    changes: tuple[str, ...] = ()

    @property
    def is_bytecode(self) -> bool:
        """Return whether Python compiled it from a file of the tree: it holds that file's time."""
        return self.path.endswith(b".pyc")

    def document(self) -> dict[str, object]:
        facts = {"path": escape_name(self.path), "kind": self.kind, "bytes": self.bytes}
        message = {"what": list(self.changes)} if self.changes else {}
        return {**facts, "layer": self.layer, **message}


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeChanges:
    """All paths that differ, in the order of their names."""

    differences: tuple[Difference, ...]

    def of(self, state: State) -> list[Difference]:
        """Return the differences of one state, the largest first, and bytecode last."""
        return sorted(
            (difference for difference in self.differences if difference.state == state),
            key=lambda difference: (difference.is_bytecode, -difference.bytes, difference.path),
        )

    def layers(self) -> dict[str, dict[str, int]]:
        """Count the paths that differ in each layer: layer -> state -> number."""
        counts = Counter((difference.layer, difference.state) for difference in self.differences)
        names = dict.fromkeys(difference.layer for difference in self.differences)
        return {name: {state: counts[name, state] for state in STATES} for name in names}


def candidates(old: LayerStack, new: LayerStack) -> Iterator[bytes]:
    """Yield the files with contents to compare: all else about them is equal."""
    for path, placed in new.tree.items():
        before, after = old.tree.get(path), placed.node
        if (
            before is not None
            and before.node.kind == after.kind == "file"
            and before.node.size == after.size > 0
        ):
            yield path


def compare(old: LayerStack, new: LayerStack, other_contents: Collection[bytes]) -> TreeChanges:
    """Compare all paths. `other_contents` are the candidates with differing contents.

    Times are not compared: a file that is written again is the same file.
    """
    return TreeChanges(differences=tuple(_differences(old, new, other_contents)))


def _differences(
    old: LayerStack, new: LayerStack, other: Collection[bytes]
) -> Iterator[Difference]:
    for path in sorted({*old.tree, *new.tree}):
        before, after = old.tree.get(path), new.tree.get(path)
        if before is None:
            yield _difference("added", new.tree[path], new.names)
        elif after is None:
            yield _difference("removed", before, old.names)
        elif message := _describe_changes(before.node, after.node, same=path not in other):
            yield _difference("changed", after, new.names, message)


def _difference(
    state: State, placed: LayeredNode, names: Sequence[str], message: tuple[str, ...] = ()
) -> Difference:
    node = placed.node
    return Difference(
        path=node.path,
        state=state,
        kind=node.kind,
        bytes=node.size,
        layer=names[placed.layer],
        changes=message,
    )


def _describe_changes(old: ListedPath, new: ListedPath, *, same: bool) -> tuple[str, ...]:
    """Return the differences, as `old -> new` if that is short."""
    if old.kind != new.kind:
        return (f"{old.kind} -> {new.kind}",)
    differs = {
        f"mode {old.mode:o} -> {new.mode:o}": old.mode != new.mode,
        f"owner {old.uid}:{old.gid} -> {new.uid}:{new.gid}": (old.uid, old.gid)
        != (new.uid, new.gid),
        f"target {escape_name(old.target)} -> {escape_name(new.target)}": old.target != new.target,
        "device": old.device != new.device,
        f"size {old.size} -> {new.size}": old.size != new.size,
        "contents": old.size == new.size and not same,
    }
    return tuple(text for text, is_true in differs.items() if is_true)


def files_that_differ(old: LayerStack, new: LayerStack) -> set[bytes]:
    """Return the files of the same size with differing contents; raises `UsageError`.

    A layer that both have byte for byte is not unpacked. Both sides are read at once.
    """

    @cache
    def is_same(before: int, after: int) -> bool:
        """Return whether two layers are the same bytes; only layers of one size can be."""
        sizes = old.sizes[before], new.sizes[after]
        return sizes[0] == sizes[1] and old.digest(before) == new.digest(after)

    wanted = {
        path
        for path in candidates(old, new)
        if not is_same(old.tree[path].layer, new.tree[path].layer)
    }
    if not wanted:
        return set()
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda stack: stack.digests(wanted), (old, new))
    return {path for path in wanted if first[path] != second[path]}
