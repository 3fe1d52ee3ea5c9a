"""An OCI image of one layer from a squashfs file, as an archive with the OCI image layout.

It has `manifest.json` of `docker save` as well, so Docker Engine loads it, too.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from typing import IO, TYPE_CHECKING, Any

from sifwright.errors import BuildError, MachineError
from sifwright.images.oci.oci_layout import blob_name
from sifwright.images.transfer.sif_parts import INDEX, MANIFEST

if TYPE_CHECKING:
    from pathlib import Path

_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_NAME = "org.opencontainers.image.ref.name"
_PROGRAM = "sqfs2tar"
_CHUNK = 1 << 20
# The level of the program gzip; Python's own 9 takes twice as long for 1 % less.
_LEVEL = 6
# The container's start is that of the SIF: this program sets the image's environment.
_ENTRYPOINT = ["/.singularity.d/actions/exec"]
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def require_program() -> None:
    """Raise `MachineError` without sqfs2tar."""
    if not shutil.which(_PROGRAM):
        fix = "Install squashfs-tools-ng (Debian, Fedora), or deliver a squashfs file."
        raise MachineError.of(f"{_PROGRAM} is missing", fix=fix)


def write(squashfs: Path, target: Path, *, name: str, architecture: str) -> None:
    """Write the archive of an image with this name; the same squashfs gives the same bytes.

    Raises `BuildError` if the squashfs file cannot be read.
    """
    layer = target.with_name(f"{target.name}.layer")
    config = _json(_described(_pack_layer(squashfs, layer), architecture))
    size = layer.stat().st_size
    with layer.open("rb") as file:
        digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _blob(_CONFIG, _digest(config), len(config)),
            "layers": [_blob(_LAYER, digest, size)],
        }
    )
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        _add(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        for data in (config, manifest):
            _add(archive, blob_name(_digest(data)), data)
        _add(archive, "index.json", _index(manifest, name))
        _add(archive, "manifest.json", _docker_manifest(config, digest, name))
        with layer.open("rb") as file:
            _add_file(archive, blob_name(digest), file, size)
    layer.unlink()


def _pack_layer(squashfs: Path, layer: Path) -> str:
    """Write the layer, packed by gzip, and return the digest of the tar file in it."""
    sha256 = hashlib.sha256()
    # sqfs2tar leaves out the entry of the root folder unless told; podman 4.3 ignores that entry.
    command = [_PROGRAM, "--root-becomes", ".", str(squashfs)]
    with (
        layer.open("wb") as file,
        gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
    ):
        assert process.stdout and process.stderr  # noqa: S101, PT018  # both are pipes
        while chunk := process.stdout.read(_CHUNK):
            sha256.update(chunk)
            packed.write(chunk)
        message = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        raise BuildError.of(f"{_PROGRAM} failed: {message}", where=str(squashfs))
    return f"sha256:{sha256.hexdigest()}"


def _described(diff_id: str, architecture: str) -> dict[str, Any]:
    return {
        "architecture": architecture,
        "os": "linux",
        "config": {"Env": [_PATH], "Entrypoint": _ENTRYPOINT, "Cmd": ["/bin/bash"]},
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        "history": [{"created_by": "sifwright deliver"}],
    }


def _index(manifest: bytes, name: str) -> bytes:
    blob = {**_blob(MANIFEST, _digest(manifest), len(manifest)), "annotations": {_NAME: name}}
    return _json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [blob]})


def _docker_manifest(config: bytes, layer: str, name: str) -> bytes:
    image = {"Config": blob_name(_digest(config)), "RepoTags": [name], "Layers": [blob_name(layer)]}
    return _json([image])


def _blob(media: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": media, "digest": digest, "size": size}


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    _add_file(archive, name, io.BytesIO(data), len(data))


def _add_file(archive: tarfile.TarFile, name: str, data: IO[bytes], size: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = size
    archive.addfile(entry, data)
