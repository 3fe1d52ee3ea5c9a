"""An image of one tree of files, loaded as an archive of an image is.

Engines import a bare tree as well. Podman leaves a copy of each in its temporary folder
(containers/podman#28531, open in 2026), and reads the variables given with it in its own way.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sifwright.build.checks.host_checks import TEMPORARY_FIX
from sifwright.build.docker.tar_members import END, member, text
from sifwright.images.sources.model import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from sifwright.build.docker.docker_build import DockerBuild
    from sifwright.render.oci_config import OciConfig

__all__ = ["load_tree"]

_LAYER = "layer.tar"


def load_tree(build: DockerBuild, tree: Iterable[bytes], config: OciConfig | None = None) -> str:
    """Make an image of a tar archive, with this configuration or none; the image's id."""
    with build.spooled(tree, build.context.work, TEMPORARY_FIX) as layer:
        return build.load(_archive(layer, _described(build, layer, config)))


def _described(build: DockerBuild, layer: Path, config: OciConfig | None) -> dict[str, Any]:
    """What OCI's image specification calls the image's configuration."""
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


def _archive(layer: Path, described: dict[str, Any]) -> Iterator[bytes]:
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
