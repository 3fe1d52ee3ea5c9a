"""Listings of layers, and the tree of a stack of them against a model that holds every path."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sifwright.errors import BuildError
from sifwright.images.contents import listing
from sifwright.images.contents.listing import ListedPath
from sifwright.make_image.pack_layers import lower_tree
from sifwright.make_image.pack_layers.lower_tree import LowerTree
from sifwright.make_image.pack_layers.tree_state import PreviousState
from tests.unit.listings import write_listing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

KINDS = ["file", "folder", "symlink", "fifo", "socket", "block device", "character device"]
numbers = st.integers(0, 2**33)
names = st.binary(min_size=1, max_size=5).map(lambda name: name.replace(b"/", b"-"))
nodes = st.builds(
    ListedPath,
    path=st.lists(names, max_size=4).map(b"/".join),
    kind=st.sampled_from([*KINDS, "whiteout"]),
    mode=st.integers(0, 0o7777),
    uid=numbers,
    gid=numbers,
    size=numbers,
    mtime=numbers,
    target=st.binary(max_size=9),
    device=st.tuples(numbers, numbers),
    links=numbers,
    xattrs=st.dictionaries(names, st.binary(max_size=9), max_size=2).map(
        lambda nodes: tuple(sorted(nodes.items()))
    ),
)


@given(st.lists(nodes, unique_by=lambda node: node.path), st.randoms())
def test_a_written_listing_is_read(
    tmp_path_factory: pytest.TempPathFactory, paths: list[ListedPath], random: object
) -> None:
    folder = tmp_path_factory.mktemp("listing")
    write_listing(folder / "one", paths)
    assert listing.read(folder / "one") == sorted(paths, key=lambda node: node.path.split(b"/"))
    random.shuffle(paths)  # type: ignore[attr-defined]
    write_listing(folder / "other", paths)
    assert (folder / "one").read_bytes() == (folder / "other").read_bytes()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text",
        gzip.compress(b"text", mtime=0),
        gzip.compress(b"[]", mtime=0),
        gzip.compress(b"{}", mtime=0),
        gzip.compress(json.dumps({"format": listing.FORMAT + 1, "nodes": 0}).encode(), mtime=0),
        gzip.compress(json.dumps({"format": listing.FORMAT, "nodes": 1}).encode(), mtime=0),
        gzip.compress(json.dumps({"format": listing.FORMAT, "nodes": []}).encode(), mtime=0)[:-9],
    ],
)
def test_other_files_than_listings_are_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "listing").write_bytes(data)
    for reader in (listing.read, LowerTree):
        with pytest.raises(BuildError, match="is no listing"):
            reader(tmp_path / "listing")


# ---- the tree of a stack ------------------------------------------------------------------------

Layer = dict[bytes, str]
# In the order of bytes, some come between a folder and what is in it.
NAMES = [b"a", b"a\1", b"a-", b"b", b"\n", b"\\", b'"', b"\xff", "ü".encode()]
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(b"/".join)
kinds = st.sampled_from(["file", "folder", "folder", "symlink", "whiteout"])


def _with_folders(kinds: Mapping[bytes, str]) -> Layer:
    """Add the folder of each path to a layer, as all layers have them."""
    layer = {**kinds, b"": "folder"}
    for path in kinds:
        above = path
        while above := above.rpartition(b"/")[0]:
            layer[above] = "folder"
    return layer


layers = st.dictionaries(paths, kinds, max_size=12).map(_with_folders)


class Model:
    """A tree that gets one layer after the other."""

    def __init__(self) -> None:
        self.kinds: Layer = {}
        self.gone: set[bytes] = set()

    def add(self, layer: Layer) -> None:
        for path, kind in sorted(layer.items()):
            if kind != "folder":
                hidden = {
                    known_path for known_path in self.kinds if known_path.startswith(path + b"/")
                }
                self.gone |= hidden
                self.kinds = {
                    known_path: self.kinds[known_path] for known_path in self.kinds.keys() - hidden
                }
            if kind == "whiteout":
                self.gone.add(path)
                self.kinds.pop(path, None)
            else:
                self.gone.discard(path)
                self.kinds[path] = kind

    def names(self, folder: bytes) -> list[bytes]:
        inside = (os.path.split(path) for path in self.kinds if path)
        return sorted(name for above, name in inside if above == folder)


@given(st.lists(layers, max_size=4), st.sampled_from([1, 2, 3, listing.BLOCK]), st.randoms())
def test_the_highest_layer_wins_and_only_folders_are_merged(
    tmp_path_factory: pytest.TempPathFactory, stack: list[Layer], block: int, random: object
) -> None:
    folder, model = tmp_path_factory.mktemp("tree"), Model()
    with patch.object(listing, "BLOCK", block), patch.object(lower_tree, "_FOLDERS", block):
        for number, layer in enumerate(stack):
            nodes = [ListedPath(path=path, kind=kind) for path, kind in layer.items()]
            write_listing(folder / str(number), nodes)
            model.add(layer)
        lower = LowerTree(*(folder / str(number) for number in range(len(stack))))
        asked = sorted({path for layer in stack for path in layer} | {b"a", b"a/b/x", b"\xff\xff"})
        random.shuffle(asked)  # type: ignore[attr-defined]
        for path in asked:
            node = lower.get(path)
            assert (node.kind if node else None) == model.kinds.get(path)
            assert list(lower.names(path)) == model.names(path)
            assert lower.was_removed(path) == (path in model.gone)


def test_a_path_as_long_as_any_is_looked_up(tmp_path: Path) -> None:
    """Look it up at once, without calls in each other, of which Python allows 1000."""
    names = [b"d"] * 2000
    chain = [ListedPath(path=b"/".join(names[:depth]), kind="folder") for depth in range(2001)]
    write_listing(tmp_path / "layer", chain)
    assert LowerTree(tmp_path / "layer").get(chain[-1].path) == chain[-1]


few = st.lists(st.sampled_from(NAMES[:3]), min_size=1, max_size=2).map(b"/".join)
states = st.dictionaries(few | paths, st.integers(0, 1), max_size=12)


def _lines(state: Mapping[bytes, int]) -> Sequence[tuple[bytes, bytes]]:
    result = sorted(state.items(), key=lambda item: item[0].split(b"/"))
    texts = ((path, number, os.fsdecode(path)) for path, number in result)
    return [(path, f"[{json.dumps(text)},1,{number}]\n".encode()) for path, number, text in texts]


@given(states, states)
def test_a_state_is_compared_path_by_path(before: dict[bytes, int], now: dict[bytes, int]) -> None:
    compared = PreviousState(line for _, line in _lines(before))
    same = [path for path, line in _lines(now) if compared.had(path, line)]
    assert set(same) == {path for path in now if before.get(path) == now[path]}
