"""Listings of layers, written from nodes in any order."""

from collections.abc import Iterable
from pathlib import Path

from sifwright.images.contents.listing import ListedPath, ListingWriter, key


def write_listing(path: Path, nodes: Iterable[ListedPath]) -> None:
    writer = ListingWriter()
    for listed in sorted(nodes, key=lambda node: key(node.path)):
        writer.add(listed)
    writer.write(path)
