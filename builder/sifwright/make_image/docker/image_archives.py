"""Archives of images that an engine loads, written while they are read.

Engines import a bare tree as well. But podman leaves a copy of each tree in its temporary folder
(containers/podman#28531, open in 2026). It also reads the variables of the import in its own way.
An OCI layout is sent in the form of 'docker save' since Docker Engine 25. This form has the blobs,
and a manifest.json that names them. Engines before do not read the index of a layout (20.10,
tried).
"""

import hashlib
import io
import json
import lzma
import os
import tarfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from sifwright.errors import MachineError
from sifwright.host.engines.docker import Docker
from sifwright.images.contents.files_to_read import Readable
from sifwright.images.contents.image_tree import BadImage
from sifwright.images.model import ARCHITECTURES
from sifwright.images.oci import documents, oci_layout
from sifwright.images.oci.streams import CheckedStream, PieceStream, drain
from sifwright.make_image.docker.docker_build import DockerBuild
from sifwright.render.oci_config import Local, OciConfig
from sifwright.system import files
from sifwright.system.tempdirs import TEMPORARY_FIX

Opened = Callable[[str], IO[bytes]]

_MANIFEST = "manifest.json"
# Errors of reading a cut or damaged archive, in any compression that tarfile knows.
_DAMAGE = (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError)
_FIX = "Name what 'docker save' or skopeo wrote, with one image in it."
END = bytes(2 * tarfile.BLOCKSIZE)
_CHUNK = 1 << 20
_LAYER = "layer.tar"
_ONE = "Take one out, 'skopeo copy oci:FOLDER:NAME oci:OTHER' (or oci-archive:), and name that."
_GZIP = "Pack it with gzip: skopeo copy --dest-compress-format gzip … oci:OTHER, and name that."


def load(engine: Docker, image: Local) -> str:
    """Load an archive or a layout; the id of its image. Raises `MachineError` if it is none."""
    try:
        return engine.load(_read(image, engine))
    except (BadImage, ValueError) as error:
        message = f"it cannot be read as {image.kind}: {error}"
        fix = getattr(error, "fix", "") or _FIX
        raise MachineError.of(message, where=image.name, fix=fix) from None


def _read(image: Local, engine: Docker) -> Iterator[bytes]:
    """Read an image; faults of its archive become `BadImage`, to differ from the engine's."""
    path = Path(image.name)
    try:
        if image.kind == "oci":
            yield from _layout_archive(lambda name: oci_layout.opened(path, name), engine)
        elif not path.is_file():
            raise BadImage("there is no such file")
        elif image.kind == "oci-archive":
            with tarfile.open(path) as source:
                yield from _layout_archive(lambda name: archive_member(source, name), engine)
        else:
            yield from unnamed(path)
    except _DAMAGE as error:
        raise BadImage(str(error) or type(error).__name__) from error


def unnamed(archive: Path, **other: str) -> Iterator[bytes]:
    """Yield a docker-archive without names, which loading would take from other images.

    `other` is what its manifest says instead.
    """
    with tarfile.open(archive) as source:
        for entry in source:
            # Engines from 25 on write an index as well, and would take the names from it.
            if entry.name in {"repositories", "index.json", "oci-layout"}:
                continue
            data: IO[bytes] | None = source.extractfile(entry) if entry.isreg() else None
            if data and entry.name == _MANIFEST:
                data = _without_names(entry, data.read(), other)
            yield from member(entry, data)
    yield END


def _without_names(entry: tarfile.TarInfo, data: bytes, other: Mapping[str, str]) -> IO[bytes]:
    images = documents.parsed_list(data)
    if len(images) != 1:
        raise BadImage("it does not hold one image")
    text = json.dumps([{**images[0], "RepoTags": None, **other}]).encode()
    entry.size = len(text)
    return io.BytesIO(text)


def member(entry: tarfile.TarInfo, data: Readable | None) -> Iterator[bytes]:
    """Yield one entry; `data` has as many bytes as it says."""
    yield entry.tobuf(tarfile.PAX_FORMAT)
    if data is None:
        return
    while chunk := data.read(_CHUNK):
        yield chunk
    yield bytes(-entry.size % tarfile.BLOCKSIZE)


def text(name: str, data: bytes) -> Iterator[bytes]:
    return _plain_file(name, len(data), io.BytesIO(data))


def _plain_file(name: str, size: int, data: Readable) -> Iterator[bytes]:
    entry = tarfile.TarInfo(name)
    entry.size = size
    return member(entry, data)


def load_tree(
    build: DockerBuild,
    tree: Iterator[bytes],
    config: OciConfig | None = None,
    left_out: Collection[str] = (),
) -> str:
    """Make an image of a tar archive without these entries; the image's id.

    It has this configuration or none.
    """
    pieces = _filtered(tree, left_out) if left_out else tree
    with build.archive_file(pieces, build.context.work_dir, TEMPORARY_FIX) as layer:
        return build.load(_tree_archive(layer, _described(build, layer, config)))


def _filtered(tree: Iterator[bytes], left_out: Collection[str]) -> Iterator[bytes]:
    stream: Any = PieceStream(tree)
    with tarfile.open(fileobj=stream, mode="r|", bufsize=_CHUNK) as source:
        for entry in source:
            if os.path.normpath(entry.name) not in left_out:
                yield from member(entry, source.extractfile(entry) if entry.isreg() else None)
    yield END
    # Or the writer waits for us.
    drain(stream)


def _described(build: DockerBuild, layer: Path, config: OciConfig | None) -> dict[str, Any]:
    """Return the image's configuration by OCI's image specification."""
    processor = build.engine.processor
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        "architecture": ARCHITECTURES.get(processor, processor),
        "os": "linux",
        "created": now,
        "config": _settings(config) if config else {},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{files.sha256(layer)}"]},
        "history": [{"created": now, "created_by": "sifwright"}],
    }


def _settings(config: OciConfig) -> dict[str, Any]:
    return {
        "Env": [f"{name}={value}" for name, value in config.env.items()],
        "Labels": dict(config.labels),
        "User": config.user,
        "WorkingDir": config.working_dir,
        "Entrypoint": list(config.entrypoint) or None,
        "Cmd": list(config.cmd),
    }


def _tree_archive(layer: Path, described: dict[str, Any]) -> Iterator[bytes]:
    config = json.dumps(described).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    yield from text(name, config)
    with layer.open("rb") as data:
        yield from _plain_file(_LAYER, layer.stat().st_size, data)
    yield from _end(name, [_LAYER])


def _end(config: str, layers: Sequence[str]) -> Iterator[bytes]:
    """Yield the end of an archive: its manifest, by which the image gets no name."""
    image = {"Config": config, "RepoTags": None, "Layers": layers}
    yield from text(_MANIFEST, json.dumps([image]).encode())
    yield END


def archive_member(source: tarfile.TarFile, name: str) -> IO[bytes]:
    for path in (name, f"./{name}"):
        with suppress(KeyError):
            if file := source.extractfile(path):
                return file
    raise BadImage(f"it has no {name}")


def _layout_archive(opened: Opened, engine: Docker) -> Iterator[bytes]:
    manifest = _manifest(opened, engine.processor)
    if not engine.unpacks_zstd and any(layer.media.endswith("zstd") for layer in manifest.layers):
        raise BadImage(f"{engine} does not unpack zstd", _GZIP)
    config, *layers = (blob.digest for blob in (manifest.config, *manifest.layers))
    for digest in dict.fromkeys((config, *layers)):
        with opened(oci_layout.blob_name(digest)) as data:
            yield from _blob(digest, data)
    yield from _end(oci_layout.blob_name(config), [*map(oci_layout.blob_name, layers)])


def _manifest(opened: Opened, processor: str) -> documents.Manifest:
    def blob(digest: str) -> tuple[dict[str, Any], str]:
        with opened(oci_layout.blob_name(digest)) as data:
            return documents.document(data, digest)

    with opened("index.json") as data:
        index, _ = documents.document(data)
    names = sorted({entry.name for entry in documents.entries(index)})
    if len(names) > 1:
        raise BadImage(f"it has {len(names)} images: {', '.join(names)[:200]}", _ONE)
    return oci_layout.chosen(index, "", processor, blob)


def _blob(digest: str, data: IO[bytes]) -> Iterator[bytes]:
    """Yield a blob and compare its digest: engines compare layers with the configuration only."""
    size = data.seek(0, os.SEEK_END)
    data.seek(0)
    checked = CheckedStream(data, digest)
    yield from _plain_file(oci_layout.blob_name(digest), size, checked)
    checked.finish()
