"""A SIF, flat or layered: its tree is walked, not held, and a few files are read."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import ExitStack, closing
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.images.contents import image_tree
from sifwright.images.contents.files_to_read import keep, keeps_link, want
from sifwright.images.contents.image_tree import LayerContents, stacked
from sifwright.images.contents.layer_stack import LayerStack
from sifwright.images.contents.unsquashfs import Squashed
from sifwright.images.sif import sif_file
from sifwright.images.sif.fingerprint import known_fingerprint
from sifwright.images.sif.format import ARCHITECTURES as CODES
from sifwright.images.sources import shell_environment
from sifwright.images.sources.model import (
    ARCHITECTURES,
    BadImage,
    Config,
    FoundImage,
    ImageContents,
    SourceError,
)
from sifwright.images.squashfs.inodes import SYMLINK
from sifwright.images.squashfs.reader import Squashfs
from sifwright.images.squashfs.stack import stacked as stacked_squashfs
from sifwright.images.squashfs.structures import BadSquashfs, ForeignSquashfs
from sifwright.system import digest_cache

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sifwright.images.contents.image_tree import ImageTree
    from sifwright.images.sources.model import Source
    from sifwright.images.squashfs.stack import TreeNode
    from sifwright.system.progress import Timer

_LABELS = ".singularity.d/labels.json"
_ENVIRONMENT = ".singularity.d/env/"
# Apptainer's own, which say nothing of the image.
_NOT_OF_THE_IMAGE = ("94-appsbase.sh", "95-apps.sh", "99-base.sh", "99-runtimevars.sh")
# Bytes of the files that are read: some libraries of 2 to 20 MB.
_MOST_READ = 1 << 30
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find(source: Source, processor: str) -> FoundImage:
    """Find a SIF. Raise `SourceError` or `BadImage`."""
    path = Path(source.name)
    if not path.is_file():
        fix = "Name the file of an image, or write docker:// in front of an image of a registry."
        raise SourceError.of("there is no such file", where=str(path), fix=fix)
    _refuse_other(path, processor)

    def read(timer: Timer) -> ImageContents:
        timer.start(f"{path.name}, {path.stat().st_size / 1e6:.1f} MB")
        tree = _tree(path)
        config = Config(processor=processor, environment=_environment(tree), labels=_labels(tree))
        digest = f"sha256:{known_fingerprint(path)}"
        return ImageContents(digest=digest, config=config, tree=tree, bytes=path.stat().st_size)

    return FoundImage(key=f"sif {digest_cache.identity(path.stat())} {processor}", read=read)


def _refuse_other(path: Path, processor: str) -> None:
    codes = {code.rstrip(b"\0"): name for name, code in CODES.items()}
    name = codes.get(sif_file.read(path).header.arch.rstrip(b"\0"), "")
    if name and name != ARCHITECTURES.get(processor, processor):
        raise BadImage(
            f"it is for {name}, not for {processor}",
            "Name an image for this processor, or give the other one with --processor.",
        )


def _tree(path: Path) -> ImageTree:
    parts = [sif_file.place(path, partition) for partition in sif_file.partitions(path)]
    with ExitStack() as stack:
        try:
            opened = [stack.enter_context(closing(Squashfs(part))) for part in parts]
            layer, places = _walked(stacked_squashfs(opened))
        except ForeignSquashfs:
            # Packed by what only unsquashfs knows, or with an overlay driver's notes.
            layer, places = _listed(path)
        except BadSquashfs as error:
            raise BadImage(f"its files cannot be read: it {error}") from error
    for number, names in places.items():
        _read(Squashed(path=path, offset=parts[number].offset), names, layer)
    return stacked([layer])


def _read(squashed: Squashed, names: Sequence[str], layer: LayerContents) -> None:
    """Keep what is wanted of these files, one after the other."""
    for path, data in squashed.contents([item.encode(errors="surrogateescape") for item in names]):
        name = path.decode(errors="surrogateescape")
        if (wanted := want(name)) is not None:
            layer.keep(name, keep(wanted, len(data), BytesIO(data)))


def _walked(root: TreeNode) -> tuple[LayerContents, dict[int, list[str]]]:
    """Return the links, the files to read, and the layer to read each from."""
    layer, places = LayerContents(), defaultdict[int, list[str]](list)
    left = _MOST_READ
    for path, node in _below(root):
        wanted, inode = want(path), None
        if not node.is_directory and (wanted is not None or keeps_link(path)):
            inode = node.inode()
        if inode is not None and inode.kind == SYMLINK:
            if keeps_link(path):
                layer.link(path, inode.target.decode(errors="surrogateescape"))
        elif wanted is not None:
            layer.keep(path, b"")
            if inode is not None and inode.span and wanted.reads(inode.span.size):
                left -= inode.span.size
                places[node.layer.number].append(path)
        if left < 0:
            raise BadImage(f"its libraries have more than {_MOST_READ >> 20} MiB")
    return layer, places


def _below(root: TreeNode) -> Iterator[tuple[str, TreeNode]]:
    """Yield all paths with their nodes."""
    folders = [("", root)]
    while folders:
        start, folder = folders.pop()
        for name, node in folder.names().items():
            path = image_tree.inside(start + name.decode(errors="surrogateescape"))
            yield path, node
            if node.is_directory:
                folders.append((f"{path}/", node))


def _listed(path: Path) -> tuple[LayerContents, dict[int, list[str]]]:
    """Return the same as `_walked` from unsquashfs, all paths at once."""
    layer, places = LayerContents(), defaultdict[int, list[str]](list)
    for name, placed in LayerStack.of(path).tree.items():
        inside = name.decode(errors="surrogateescape")
        wanted = want(inside)
        if placed.node.kind == "symlink":
            if keeps_link(inside):
                layer.link(inside, placed.node.target.decode(errors="surrogateescape"))
        elif wanted is not None:
            layer.keep(inside, b"")
            if placed.node.kind == "file" and wanted.reads(placed.node.size):
                places[placed.layer].append(inside)
    return layer, places


def _environment(tree: ImageTree) -> dict[str, str]:
    """Return the variables of Apptainer's scripts, as far as known without running them."""
    names = sorted(path for path in tree.files if path.startswith(_ENVIRONMENT))
    own = [name for name in names if not name.endswith(_NOT_OF_THE_IMAGE)]
    return shell_environment.after((tree.text(name) or "" for name in own), {"PATH": _PATH})


def _labels(tree: ImageTree) -> dict[str, str]:
    try:
        labels = json.loads(tree.text(_LABELS) or "{}")
    except (ValueError, RecursionError):
        return {}
    return {str(key): str(text) for key, text in labels.items()} if isinstance(labels, dict) else {}
