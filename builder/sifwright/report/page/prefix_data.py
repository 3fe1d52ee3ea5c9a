"""The content of the page about an installation on the host, from its folder."""

from __future__ import annotations

import os
from pathlib import Path

from sifwright.images.contents import listing, packages
from sifwright.images.contents.layer_stack import LayeredNode
from sifwright.images.contents.listing import ListedPath
from sifwright.install.native.native_folder import NativeFolder
from sifwright.report.page import report_data, sizes
from sifwright.report.page.report_data import Facts
from sifwright.report.prefix_state import kept_plan


def gather(folder: NativeFolder) -> Facts:
    """Read the version in use; raises `UsageError` if the folder is none of ours or has none."""
    version = folder.in_use()
    tree = _tree(version.folder)
    texts = {
        path: (version.folder / os.fsdecode(path)).read_bytes()
        for path in packages.sources(tree, names_only=False)
        if tree[path].node.kind == "file"
    }
    installed = packages.find(texts, tree)
    return Facts(
        plan=kept_plan(version),
        record={**version.entry, "built": version.text("installed")},
        events=report_data.timeline(version.entry),
        definition="",
        layers=tuple(sizes.attribute(tree, installed, [("installation", 0)])),
        by_layer=False,
        packages=tuple(installed),
        packed=0,
        prefix=str(folder.root),
    )


def _tree(folder: Path) -> dict[bytes, LayeredNode]:
    """Return all paths below the folder as one layer."""
    tree = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        node = ListedPath(
            path=os.fsencode(path.relative_to(folder)),
            kind=listing.kind(status),
            size=status.st_size,
            links=status.st_ino if status.st_nlink > 1 else 0,
        )
        tree[node.path] = LayeredNode(node=node, layer=0)
    return tree
