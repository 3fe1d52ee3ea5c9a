"""The JSON of images: index, manifest, configuration. Read with distrust."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sifwright.errors import quoted
from sifwright.images.contents.files_to_read import Readable
from sifwright.images.contents.image_tree import BadImage
from sifwright.images.model import ARCHITECTURES, Config, OtherProcessor, Start

# The OCI distribution specification asks registries for 4 MiB; a configuration may be as long.
MOST_BYTES = 4 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_CONFIGS = (
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
)
_LAYER = re.compile(
    r"application/vnd\.(?:oci\.image\.layer\.(?:nondistributable\.)?v1\.tar(?:\+(?:gzip|zstd))?"
    r"|docker\.image\.rootfs\.(?:foreign\.)?diff\.tar(?:\.gzip|\.zstd)?)"
)
_OLD = "is in Docker's old format (schema 1)"
_OLD_FIX = "Pull and push it with a Docker or podman of today."
_MOST_LAYERS = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Blob:
    """`foreign`: it is kept elsewhere than the image."""

    digest: str
    size: int
    media: str = ""
    platform: str = ""
    name: str = ""
    foreign: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """An image for one processor."""

    digest: str
    config: Blob
    layers: tuple[Blob, ...]

    @property
    def bytes(self) -> int:
        return self.config.size + sum(layer.size for layer in self.layers)


def document(stream: Readable, digest: str = "") -> tuple[dict[str, Any], str]:
    """Return a JSON object and its digest; compare the digest if it is known."""
    data = whole(stream)
    actual = f"sha256:{hashlib.sha256(data).hexdigest()}"
    if digest and actual != digest:
        raise BadImage(f"what came for {digest} has the digest {actual}")
    return parsed(data), actual


def whole(stream: Readable) -> bytes:
    """Read all of a short stream."""
    data = b""
    while len(data) <= MOST_BYTES and (piece := stream.read(MOST_BYTES)):
        data += piece
    if len(data) > MOST_BYTES:
        raise BadImage(f"a manifest or configuration has more than {MOST_BYTES >> 20} MiB")
    return data


def parsed(data: bytes) -> dict[str, Any]:
    """Return a JSON object."""
    value: dict[str, Any] = _typed(_json(data), dict, "its description")
    return value


def parsed_list(data: bytes) -> list[dict[str, Any]]:
    """Return a list of JSON objects."""
    return [
        _typed(item, dict, "an image") for item in _typed(_json(data), list, "a list of images")
    ]


def strings(value: object, name: str) -> list[str]:
    return [_typed(item, str, name) for item in _typed(value or [], list, name)]


def _json(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadImage(f"what should describe the image is no JSON: {error}") from None


def is_index(value: dict[str, Any]) -> bool:
    """Tell whether the document lists images for several processors."""
    if value.get("schemaVersion") == 1 or "fsLayers" in value:
        raise BadImage(_OLD, _OLD_FIX)
    return "manifests" in value


def entries(value: dict[str, Any], name: str = "manifests") -> list[Blob]:
    """Return the images that an index lists, or the `layers` of a manifest, of any kind."""
    return [_blob(item) for item in _typed(value.get(name), list, name)]


def choose(blobs: Sequence[Blob], processor: str) -> Blob:
    """Return the image for a processor; the error names the processors that have one."""
    wanted = f"linux/{ARCHITECTURES.get(processor, processor)}"
    fitting = [blob for blob in blobs if blob.platform == wanted]
    fitting += [blob for blob in blobs if blob.platform.startswith(f"{wanted}/")]
    if fitting or [blob.platform for blob in blobs] == [""]:
        return (*fitting, *blobs)[0]
    some = ", ".join(sorted({blob.platform for blob in blobs if "unknown" not in blob.platform}))
    raise OtherProcessor(
        f"there is none for {processor} ({wanted}); there is {some or 'nothing'}",
        "Name an image for this processor, or give the other one with --processor.",
    )


def manifest(value: dict[str, Any], digest: str) -> Manifest:
    config_blob = _blob(value.get("config"))
    if config_blob.media not in (*_CONFIGS, ""):
        raise BadImage(f"is no image of a system, but {quoted(config_blob.media)}")
    layers = _typed(value.get("layers"), list, "layers")
    if len(layers) > _MOST_LAYERS:
        raise BadImage(f"has {len(layers)} layers")
    return Manifest(digest=digest, config=config_blob, layers=tuple(map(_layer, layers)))


def _layer(value: object) -> Blob:
    blob = _blob(value)
    if blob.media and not _LAYER.fullmatch(blob.media):
        raise BadImage(f"has a layer of a kind that is not known: {quoted(blob.media)}")
    return blob


def config(value: dict[str, Any], processor: str) -> Config:
    """Return an image's configuration; refuse one of another processor."""
    architecture = _typed(value.get("architecture", ""), str, "architecture")
    wanted = ARCHITECTURES.get(processor, processor)
    if architecture not in {wanted, ""} or value.get("os", "linux") != "linux":
        platform = f"{value.get('os', 'linux')}/{architecture}"
        raise OtherProcessor(
            f"it is for {quoted(platform)}, not for {processor} (linux/{wanted})",
            "Name an image for this processor, or give the other one with --processor.",
        )
    settings = _typed(value.get("config") or {}, dict, "config")
    rootfs = _typed(value.get("rootfs") or {}, dict, "rootfs")
    variables = (line.partition("=") for line in strings(settings.get("Env"), "Env"))
    return Config(
        processor=processor,
        # The last line of a name counts.
        environment={name: text for name, _, text in variables if name},
        user=_typed(settings.get("User") or "", str, "User"),
        labels={
            str(name): _typed(text, str, "Labels")
            for name, text in _typed(settings.get("Labels") or {}, dict, "Labels").items()
        },
        layers=tuple(strings(rootfs.get("diff_ids"), "diff_ids")),
    )


def start(value: dict[str, Any], processor: str) -> Start:
    """Return the settings that a Dockerfile continues with; refuse as `config` does."""
    checked = config(value, processor)
    settings = value.get("config") or {}
    return Start(
        user=checked.user,
        folder=_typed(settings.get("WorkingDir") or "", str, "WorkingDir"),
        shell=_program(settings.get("Shell"), "Shell"),
        triggers=tuple(strings(settings.get("OnBuild"), "OnBuild")),
        entry=_program(settings.get("Entrypoint"), "Entrypoint"),
        cmd=_program(settings.get("Cmd"), "Cmd"),
        environment=checked.environment,
    )


def _program(value: object, name: str) -> tuple[str, ...]:
    """Return a list of words; a text counts as one word, as in Docker's own types."""
    return (value,) if value and isinstance(value, str) else tuple(strings(value, name))


def _blob(value: object) -> Blob:
    descriptor = _typed(value, dict, "a descriptor")
    digest, size = descriptor.get("digest"), descriptor.get("size")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise BadImage(f"has {quoted(digest)} in place of a sha256")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 50:
        raise BadImage(f"has {quoted(size)} in place of a size")
    media = _typed(descriptor.get("mediaType") or "", str, "mediaType")
    notes = _typed(descriptor.get("annotations") or {}, dict, "annotations")
    platform = _typed(descriptor.get("platform") or {}, dict, "platform")
    names = (platform.get("os"), platform.get("architecture"), platform.get("variant"))
    return Blob(
        digest=digest,
        size=size,
        media=media,
        platform="/".join(str(name)[:40] for name in names if name),
        name=str(notes.get("org.opencontainers.image.ref.name", "")),
        foreign="foreign" in media or "nondistributable" in media,
    )


def _typed(value: Any, kind: type, name: str) -> Any:  # noqa: ANN401  # it is JSON
    if not isinstance(value, kind):
        raise BadImage(f"has {quoted(value)} where {name} should be")
    return value
