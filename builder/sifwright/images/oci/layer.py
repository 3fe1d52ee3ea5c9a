"""Read a layer (OCI image specification, layer.md): a tar file, of which little is kept."""

import posixpath

from sifwright.images.contents.files_to_read import Readable, keep, keeps_link, want
from sifwright.images.contents.image_tree import (
    BadImage,
    LayerContents,
    ReadBudget,
    ScanBudget,
    inside,
)
from sifwright.images.oci import tar_files
from sifwright.images.oci.streams import CheckedStream, UnpackedStream, drain
from sifwright.images.oci.tar_files import Body, Member

_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
# Prefix of AUFS's own files.
_META = ".wh..wh."
_MOST_PATHS = 5_000_000


def read(
    stream: Readable, scan: ScanBudget | None = None, room: ReadBudget | None = None
) -> LayerContents:
    """Return the contents of a layer, packed or not, and read the stream to its end.

    `scan` is that of all layers of the image, `room` that of several which are kept together.
    """
    unpacked = UnpackedStream(stream)
    layer = LayerContents(room=room or ReadBudget(), scan=scan or ScanBudget())
    try:
        for member, body in tar_files.members(unpacked):
            _add(layer, member, body)
    except tar_files.TarError as error:
        raise BadImage(f"a layer is no tar file, or not all of one: {error}") from error
    drain(unpacked)
    return layer


def checked(
    stream: Readable, digest: str, size: int = -1, scan: ScanBudget | None = None
) -> LayerContents:
    """Return the contents of a layer; its packed bytes must have this digest."""
    whole = CheckedStream(stream, digest, size)
    try:
        layer = read(whole, scan)
    except BadImage:
        # A wrong digest is the better reason.
        whole.finish()
        raise
    whole.finish()
    return layer


def _add(layer: LayerContents, member: Member, body: Body) -> None:
    path = inside(member.path)
    folder, name = posixpath.split(path)
    if name == _OPAQUE:
        layer.room.take(folder)
        layer.opaque.add(folder)
    elif name.startswith(_META):
        return
    elif name.startswith(_WHITEOUT):
        layer.room.take(path)
        layer.gone.add(posixpath.join(folder, name.removeprefix(_WHITEOUT)))
    elif path:
        (layer.folders if member.kind == "folder" else layer.others).append(hash(path))
        if len(layer.folders) + len(layer.others) > _MOST_PATHS:
            raise BadImage(f"a layer has more than {_MOST_PATHS} paths")
        _keep(layer, member, body, path)


def _keep(layer: LayerContents, member: Member, body: Body, path: str) -> None:
    if member.kind == "symlink":
        if keeps_link(path):
            layer.link(path, member.target)
        return
    wanted = want(path)
    if wanted is None:
        return
    if member.kind == "link":
        layer.room.take(path, member.target)
        layer.hard[path] = inside(member.target)
    elif member.kind == "folder":
        layer.keep(path, b"")
    elif member.kind == "file":
        layer.scan.take(member.size if wanted.reads(member.size) else 0)
        layer.keep(path, keep(wanted, member.size, body))
