"""A SIF, flat or layered: its tree is walked, not held, and a few files are read."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from io import BufferedReader
from pathlib import Path

from sifwright.images.contents import image_tree, pythons
from sifwright.images.contents.files_to_read import (
    ReadRule,
    keep,
    keeps_link,
    may_list_packages,
    want,
)
from sifwright.images.contents.image_tree import BadImage, ImageTree, LayerContents, stacked
from sifwright.images.model import (
    ARCHITECTURES,
    Config,
    FoundImage,
    ImageContents,
    Source,
    SourceError,
)
from sifwright.images.oci.streams import PieceStream, RawStream
from sifwright.images.sif import sif_file
from sifwright.images.sif.copy_data import Range
from sifwright.images.sif.fingerprint import known_fingerprint
from sifwright.images.sif.format import architecture_of
from sifwright.images.sources import shell_environment
from sifwright.images.squashfs.inodes import SYMLINK, Span
from sifwright.images.squashfs.reader import Squashfs
from sifwright.images.squashfs.stack import TreeNode
from sifwright.images.squashfs.stack import stacked as stacked_squashfs
from sifwright.images.squashfs.structures import BadSquashfs
from sifwright.system import digest_cache
from sifwright.system.progress import Timer

_LABELS = ".singularity.d/labels.json"
_ENVIRONMENT = ".singularity.d/env/"
# Apptainer's own, which say nothing of the image.
_NOT_OF_THE_IMAGE = ("94-appsbase.sh", "95-apps.sh", "99-base.sh", "99-runtimevars.sh")


def find(source: Source, processor: str) -> FoundImage:
    """Find a SIF. Raise `SourceError` or `BadImage`."""
    path = Path(source.name)
    if not path.is_file():
        fix = "Name the file of an image, or write docker:// in front of an image of a registry."
        raise SourceError.of("there is no such file", where=str(path), fix=fix)
    _refuse_other(path, processor)

    def read(timer: Timer) -> ImageContents:
        timer.start(f"{path.name}, {path.stat().st_size / 1e6:.1f} MB")
        tree = tree_of([sif_file.place(path, part) for part in sif_file.partitions(path)])
        environment, unread = _environment(tree)
        config = Config(
            processor=processor,
            environment=environment,
            unread=unread,
            labels={str(key): str(text) for key, text in tree.json(_LABELS).items()},
        )
        digest = f"sha256:{known_fingerprint(path)}"
        return ImageContents(digest=digest, config=config, tree=tree, bytes=path.stat().st_size)

    return FoundImage(key=f"sif {digest_cache.identity(path.stat())} {processor}", read=read)


def _refuse_other(path: Path, processor: str) -> None:
    name = architecture_of(sif_file.read(path).header.arch)
    if name and name != ARCHITECTURES.get(processor, processor):
        fix = "Name an image for this processor, or give the other one with --processor."
        raise BadImage(f"it is for {name}, not for {processor}", fix)


def tree_of(parts: Sequence[Range], *, only_packages: bool = False) -> ImageTree:
    """Return what squashfs files come to, the lowest first; raise `BadImage`.

    With `only_packages`, folders that say nothing of packages are left out.
    """
    with ExitStack() as stack:
        try:
            opened = [stack.enter_context(closing(Squashfs(part))) for part in parts]
            return stacked([_walked(stacked_squashfs(opened), only_packages=only_packages)])
        except BadSquashfs as error:
            raise BadImage(f"its files cannot be read: it {error}", error.fix) from error


def _walked(root: TreeNode, *, only_packages: bool) -> LayerContents:
    """Return the links, and what is kept of files."""
    layer = LayerContents()
    for path, node in _below(root, only_packages=only_packages):
        wanted = want(path)
        if node.is_directory or (wanted is None and not keeps_link(path)):
            if wanted is not None:
                layer.keep(path, b"")
            continue
        inode = node.inode()
        if inode.kind == SYMLINK:
            if keeps_link(path):
                layer.link(path, inode.target.decode(errors="surrogateescape"))
        elif wanted is not None:
            size = inode.span.size if inode.span and wanted.reads(inode.span.size) else 0
            layer.scan.take(size)
            layer.keep(path, _file_bytes(wanted, node, inode.span) if inode.span and size else b"")
    return layer


def _file_bytes(wanted: ReadRule, node: TreeNode, span: Span) -> bytes:
    pieces = PieceStream(node.layer.squashfs.contents(span))
    return keep(wanted, span.size, BufferedReader(RawStream(pieces)))


def _below(root: TreeNode, *, only_packages: bool) -> Iterator[tuple[str, TreeNode]]:
    """Yield all paths with their nodes."""
    enters = may_list_packages if only_packages else bool
    folders = [("", root)]
    while folders:
        start, folder = folders.pop()
        for name, node in folder.names().items():
            path = image_tree.inside(start + name.decode(errors="surrogateescape"))
            yield path, node
            if node.is_directory and enters(path):
                folders.append((f"{path}/", node))


def _environment(tree: ImageTree) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the variables of Apptainer's scripts, as far as known without running them."""
    names = sorted(path for path in tree.files if path.startswith(_ENVIRONMENT))
    own = [name for name in names if not name.endswith(_NOT_OF_THE_IMAGE)]
    return shell_environment.after((tree.text(name) or "" for name in own), {"PATH": pythons.PATH})
