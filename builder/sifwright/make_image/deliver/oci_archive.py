"""An OCI image of one layer from a squashfs file, as an archive with the OCI image layout.

It has `manifest.json` of `docker save` as well, so Docker Engine loads it, too.
"""

import gzip
import io
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from sifwright.errors import BuildError, MachineError
from sifwright.images.oci.oci_layout import blob_name
from sifwright.images.oci.streams import CheckedStream
from sifwright.images.transfer.sif_parts import INDEX, MANIFEST, described
from sifwright.system import files

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
    unpacked = _pack_layer(squashfs, layer)
    config = _json(
        {
            "architecture": architecture,
            "os": "linux",
            "config": {"Env": [_PATH], "Entrypoint": _ENTRYPOINT, "Cmd": ["/bin/bash"]},
            "rootfs": {"type": "layers", "diff_ids": [unpacked]},
            "history": [{"created_by": "sifwright deliver"}],
        }
    )
    size, digest = layer.stat().st_size, f"sha256:{files.sha256(layer)}"
    blob = {"mediaType": _LAYER, "digest": digest, "size": size}
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for path, data in _documents(config, blob, name).items():
            _add_file(archive, path, io.BytesIO(data), len(data))
        with layer.open("rb") as file:
            _add_file(archive, blob_name(digest), file, size)
    layer.unlink()


def _documents(config: bytes, layer: Mapping[str, Any], name: str) -> dict[str, bytes]:
    """Return all files of the archive but the layer, by their paths."""
    of_config = described(config, _CONFIG)
    parts = {"config": of_config, "layers": [layer]}
    manifest = _json({"schemaVersion": 2, "mediaType": MANIFEST, **parts})
    entry = {**described(manifest, MANIFEST), "annotations": {_NAME: name}}
    config_file, layer_file = blob_name(of_config["digest"]), blob_name(layer["digest"])
    return {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        config_file: config,
        blob_name(entry["digest"]): manifest,
        "index.json": _json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}),
        "manifest.json": _json(
            [{"Config": config_file, "RepoTags": [name], "Layers": [layer_file]}]
        ),
    }


def _pack_layer(squashfs: Path, layer: Path) -> str:
    """Write the layer, packed by gzip, and return the digest of the tar file in it."""
    # sqfs2tar leaves out the entry of the root folder unless told; podman 4.3 ignores that entry.
    command = [_PROGRAM, "--root-becomes", ".", str(squashfs)]
    with (
        layer.open("wb") as file,
        gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed,
        tempfile.TemporaryFile() as errors,  # a full pipe would stop it
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        assert process.stdout  # noqa: S101  # a pipe
        tar = CheckedStream(process.stdout, "")
        shutil.copyfileobj(tar, packed, _CHUNK)
        process.wait()
        errors.seek(0)
        message = errors.read().decode(errors="replace").strip()
    if process.returncode:
        raise BuildError.of(f"{_PROGRAM} failed: {message}", where=str(squashfs))
    return tar.digest


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _add_file(archive: tarfile.TarFile, name: str, data: IO[bytes], size: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = size
    archive.addfile(entry, data)
