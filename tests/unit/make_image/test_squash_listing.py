"""Listings of layers: exact, always the same bytes, and what a stack of them comes to."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sifwright.errors import BuildError
from sifwright.images.contents import listing
from sifwright.images.contents.listing import ListedPath
from sifwright.make_image.pack_layers.lower_tree import LowerTree
from tests.unit.listings import write_listing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


def test_a_missing_listing_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="missing: is no listing"):
        LowerTree(tmp_path / "missing")


def _tree(folder: Path, *layers: Sequence[tuple[str, str]]) -> LowerTree:
    """Return the tree of layers, each a list of path and kind."""
    files = []
    for number, layer in enumerate(layers):
        files.append(folder / str(number))
        write_listing(
            files[-1], [ListedPath(path=os.fsencode(path), kind=kind) for path, kind in layer]
        )
    return LowerTree(*files)


def _below(tree: LowerTree, folder: bytes) -> Iterator[bytes]:
    """Return all paths in a folder."""
    for name in tree.names(folder):
        yield (path := folder + b"/" + name if folder else name)
        yield from _below(tree, path)


BASE = [("", "folder"), ("a", "folder"), ("a/b", "folder"), ("a/b/c", "file"), ("d", "file")]


@pytest.mark.parametrize(
    ("layer", "paths"),
    [
        ([], {"", "a", "a/b", "a/b/c", "d"}),
        ([("a", "whiteout")], {"", "d"}),
        ([("a", "folder"), ("a/b", "whiteout")], {"", "a", "d"}),
        ([("a", "file")], {"", "a", "d"}),
        ([("a", "symlink")], {"", "a", "d"}),
        ([("d", "folder"), ("d/e", "file")], {"", "a", "a/b", "a/b/c", "d", "d/e"}),
        ([("a", "folder"), ("a/f", "file")], {"", "a", "a/b", "a/b/c", "a/f", "d"}),
        ([("x", "whiteout"), ("a/x/y", "whiteout")], {"", "a", "a/b", "a/b/c", "d"}),
    ],
)
def test_effects_of_a_layer_on_the_tree(
    tmp_path: Path, layer: list[tuple[str, str]], paths: set[str]
) -> None:
    tree = _tree(tmp_path, BASE, layer)
    assert len(list(_below(tree, b""))) == len(paths - {""})
    assert all(tree.get(os.fsencode(path)) is not None for path in paths)
    for path in paths:
        inside = {other for other in paths if other and str(Path(other).parent) == (path or ".")}
        assert {os.fsencode(Path(other).name) for other in inside} == set(
            tree.names(os.fsencode(path))
        )


def test_a_folder_made_again_has_nothing_of_the_old_one(tmp_path: Path) -> None:
    tree = _tree(tmp_path, BASE, [("a", "whiteout")], [("a", "folder")])
    assert list(tree.names(b"a")) == []
    assert tree.get(b"a/b/c") is None
