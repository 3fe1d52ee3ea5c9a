"""A SIF, flat or layered: its tree is walked, not held, and a few files are read."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import ExitStack, closing
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import digests
from sifwright.imagesource import shellenv
from sifwright.imagesource.contents import Contents, Found
from sifwright.imagesource.model import ARCHITECTURES, BadImage, Config, SourceError
from sifwright.inspection.kept import Layer, stacked
from sifwright.inspection.squashed import Squashed
from sifwright.inspection.stack import Stack
from sifwright.inspection.wanted import keep, keeps_link, want
from sifwright.sif import image
from sifwright.sif.format import ARCHITECTURES as CODES
from sifwright.squashfs.inodes import SYMLINK
from sifwright.squashfs.ondisk import BadSquashfs
from sifwright.squashfs.reader import Squashfs
from sifwright.squashfs.stack import stacked as stacked_squashfs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.imagesource.model import Source
    from sifwright.inspection.kept import Tree
    from sifwright.progress import Timer
    from sifwright.squashfs.stack import Node

__all__ = ["find"]

_LABELS = ".singularity.d/labels.json"
_ENVIRONMENT = ".singularity.d/env/"
# Apptainer's own, which say nothing of the image.
_NOT_OF_THE_IMAGE = ("94-appsbase.sh", "95-apps.sh", "99-base.sh", "99-runtimevars.sh")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find(source: Source, processor: str) -> Found:
    """A SIF. Raises `SourceError` or `BadImage`."""
    path = Path(source.name)
    if not path.is_file():
        fix = "Name the file of an image, or write docker:// in front of an image of a registry."
        raise SourceError.of("there is no such file", where=str(path), fix=fix)
    _refuse_other(path, processor)

    def read(timer: Timer) -> Contents:
        timer.start(f"{path.name}, {path.stat().st_size / 1e6:.1f} MB")
        tree = _tree(path)
        config = Config(processor=processor, environment=_environment(tree), labels=_labels(tree))
        digest = f"sha256:{digests.of_sif(path)}"
        return Contents(digest=digest, config=config, tree=tree, bytes=path.stat().st_size)

    return Found(key=f"sif {digests.identity(path.stat())} {processor}", read=read)


def _refuse_other(path: Path, processor: str) -> None:
    codes = {code.rstrip(b"\0"): name for name, code in CODES.items()}
    name = codes.get(image.read(path).header.arch.rstrip(b"\0"), "")
    if name and name != ARCHITECTURES.get(processor, processor):
        raise BadImage(
            f"it is for {name}, not for {processor}",
            "Name an image for this processor, or give the other one with --processor.",
        )


def _tree(path: Path) -> Tree:
    parts = [image.place(path, one) for one in image.partitions(path)]
    with ExitStack() as stack:
        try:
            found = [stack.enter_context(closing(Squashfs(part))) for part in parts]
            layer, places = _walked(stacked_squashfs(found))
        except BadSquashfs:
            # Packed by what only unsquashfs knows, or with an overlay driver's notes.
            layer, places = _listed(path)
    for number, paths in places.items():
        squashed = Squashed(path=path, offset=parts[number].offset)
        for name, data in squashed.texts(
            [one.encode(errors="surrogateescape") for one in paths]
        ).items():
            inside = name.decode(errors="surrogateescape")
            wanted = want(inside)
            if wanted is not None:
                layer.files[inside] = keep(wanted, len(data), BytesIO(data))
    return stacked([layer])


def _walked(root: Node) -> tuple[Layer, dict[int, list[str]]]:
    """The links, what is wanted, and in which layer that is to be read."""
    layer, places = Layer(), defaultdict[int, list[str]](list)
    for path, node in _below(root):
        if (wanted := want(path)) is not None:
            layer.files[path] = b""
        if node.is_directory:
            continue
        if keeps_link(path) and (inode := node.inode()).kind == SYMLINK:
            layer.files.pop(path, None)
            layer.links[path] = inode.target.decode(errors="surrogateescape")
        elif wanted is not None and (wanted.text or wanted.scanned):
            places[node.layer.number].append(path)
    return layer, places


def _below(root: Node) -> Iterator[tuple[str, Node]]:
    """All paths with their nodes."""
    folders = [("", root)]
    while folders:
        start, folder = folders.pop()
        for name, node in folder.names().items():
            path = start + name.decode(errors="surrogateescape")
            yield path, node
            if node.is_directory:
                folders.append((f"{path}/", node))


def _listed(path: Path) -> tuple[Layer, dict[int, list[str]]]:
    """The same from unsquashfs, all paths at once."""
    layer, places = Layer(), defaultdict[int, list[str]](list)
    for name, placed in Stack.of(path).tree.items():
        inside = name.decode(errors="surrogateescape")
        wanted = want(inside)
        if placed.node.kind == "symlink":
            if keeps_link(inside):
                layer.links[inside] = placed.node.target.decode(errors="surrogateescape")
        elif wanted is not None:
            layer.files[inside] = b""
            if placed.node.kind == "file" and (wanted.text or wanted.scanned):
                places[placed.layer].append(inside)
    return layer, places


def _environment(tree: Tree) -> dict[str, str]:
    """What Apptainer's scripts set, as far as it can be told without running them."""
    names = sorted(path for path in tree.files if path.startswith(_ENVIRONMENT))
    found = {"PATH": _PATH}
    for name in names:
        if not name.endswith(_NOT_OF_THE_IMAGE):
            found = shellenv.after(tree.text(name) or "", found)
    return found


def _labels(tree: Tree) -> dict[str, str]:
    try:
        found = json.loads(tree.text(_LABELS) or "{}")
    except (ValueError, RecursionError):
        return {}
    return {str(key): str(text) for key, text in found.items()} if isinstance(found, dict) else {}
