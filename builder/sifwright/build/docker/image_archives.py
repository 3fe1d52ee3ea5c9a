"""Archives of images that an engine loads, written while they are read.

Engines import a bare tree as well. Podman leaves a copy of each in its temporary folder
(containers/podman#28531, open in 2026), and reads the variables given with it in its own way. An
OCI layout is sent as 'docker save' writes it since Docker Engine 25: its blobs, and a manifest.json
that names them. Engines before do not read the index of a layout (20.10, tried).
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import tarfile
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sifwright.build.checks.host_checks import TEMPORARY_FIX
from sifwright.errors import MachineError
from sifwright.images.oci import documents, oci_layout
from sifwright.images.oci.streams import CheckedStream
from sifwright.images.sources.model import ARCHITECTURES, BadImage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from sifwright.build.docker.docker_build import DockerBuild
    from sifwright.host.engines.docker import Docker
    from sifwright.images.contents.files_to_read import Readable
    from sifwright.render.oci_config import Local, OciConfig

    Opened = Callable[[str], IO[bytes]]

_MANIFEST = "manifest.json"
# What reading raises for one that is cut off or damaged, packed in any way that tarfile knows.
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
            yield from _layout_of_folder(path, engine)
        elif not path.is_file():
            raise BadImage("there is no such file")
        elif image.kind == "oci-archive":
            yield from _layout_of_archive(path, engine)
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
    """Yield a file of these bytes."""
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    return member(entry, io.BytesIO(data))


def load_tree(build: DockerBuild, tree: Iterable[bytes], config: OciConfig | None = None) -> str:
    """Make an image of a tar archive, with this configuration or none; the image's id."""
    with build.spooled(tree, build.context.work_dir, TEMPORARY_FIX) as layer:
        return build.load(_tree_archive(layer, _described(build, layer, config)))


def _described(build: DockerBuild, layer: Path, config: OciConfig | None) -> dict[str, Any]:
    """Return the image's configuration by OCI's image specification."""
    with layer.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    processor = build.engine.processor
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        "architecture": ARCHITECTURES.get(processor, processor),
        "os": "linux",
        "created": now,
        "config": _settings(config) if config else {},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
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
    entry = tarfile.TarInfo(_LAYER)
    entry.size = layer.stat().st_size
    with layer.open("rb") as data:
        yield from member(entry, data)
    image = {"Config": name, "RepoTags": None, "Layers": [_LAYER]}
    yield from text("manifest.json", json.dumps([image]).encode())
    yield END


def _layout_of_folder(folder: Path, engine: Docker) -> Iterator[bytes]:
    """Yield the image of a folder; raises `BadImage` or `OSError` if it has none for the engine."""
    return _layout_archive(lambda name: oci_layout.opened(folder, name), engine)


def _layout_of_archive(file: Path, engine: Docker) -> Iterator[bytes]:
    """Yield the image of a tar file with a layout; raises `tarfile.TarError`, too."""
    with tarfile.open(file) as source:
        yield from _layout_archive(lambda name: _member(source, name), engine)


def _member(source: tarfile.TarFile, name: str) -> IO[bytes]:
    for member in (name, f"./{name}"):
        try:
            file = source.extractfile(member)
        except KeyError:
            continue
        if file is not None:
            return file
    raise BadImage(f"it has no {name}")


def _layout_archive(opened: Opened, engine: Docker) -> Iterator[bytes]:
    manifest = _manifest(opened, engine.processor)
    if not engine.unpacks_zstd and any(layer.media.endswith("zstd") for layer in manifest.layers):
        raise BadImage(f"{engine} does not unpack zstd", _GZIP)
    layers = [oci_layout.blob_name(blob.digest) for blob in manifest.layers]
    config = oci_layout.blob_name(manifest.config.digest)
    for blob in dict.fromkeys(
        [manifest.config.digest, *(layer.digest for layer in manifest.layers)]
    ):
        with opened(oci_layout.blob_name(blob)) as data:
            yield from _blob(blob, data)
    image = {"Config": config, "RepoTags": None, "Layers": layers}
    yield from text("manifest.json", json.dumps([image]).encode())
    yield END


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
    entry = tarfile.TarInfo(oci_layout.blob_name(digest))
    entry.size = data.seek(0, 2)
    data.seek(0)
    checked = CheckedStream(data, digest)
    yield from member(entry, checked)
    checked.finish()
