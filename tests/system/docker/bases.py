"""Base images for the tests: a small tree with a Python, in the formats of all image tools."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import run
from tests.system.apptainer.steps import make_root
from tests.system.docker.daemons import LIMITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LIBRARY = Path("/usr/lib/python3.11")
# Modules that no test here imports: most of the library.
_UNUSED = shutil.ignore_patterns(
    *("test", "idlelib", "dist-packages", "__pycache__", "ensurepip", "lib2to3", "tkinter"),
    *("pydoc_data", "unittest", "email", "distutils", "asyncio", "xml*", "config-*", "wsgiref"),
)
# Folders of the system in our image, and what of ours is in them.
_SYSTEM = ("bin", "sbin", "lib", "lib64", "usr", "etc", "var", "mnt", "tmp")
_OURS = ("etc/sifwright", "var/cache", "usr/share/doc", "usr/share/locale", "usr/share/man")
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
# A torch with the parts that layer base-image's test asks for: the real one has 900 MB.
_TORCH = """
from . import distributed, linalg, version
from .version import __version__
class tensor(list):
    requires_grad = False
    def __init__(self, rows, requires_grad=False):
        super().__init__(rows)
allclose = list.__eq__
"""
_LINALG = """
class det:
    def __init__(self, m):
        self.m = m
    def backward(self):
        (a, b), (c, d) = self.m
        self.m.grad = [[d, -c], [-b, a]]
"""


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_tree(folder: Path) -> Path:
    """Make a small system with Python 3.11 and most of its library, and Debian's os-release."""
    make_root(folder)
    for name in ("sed", "dirname", "rmdir"):
        shutil.copy(Path(shutil.which(name) or name).resolve(), folder / "usr" / "bin" / name)
    library = folder / _LIBRARY.relative_to("/")
    shutil.copytree(_LIBRARY, library, dirs_exist_ok=True, ignore=_UNUSED)
    (folder / "opt").mkdir()
    (folder / "tmp").mkdir(exist_ok=True)
    (folder / "tmp").chmod(0o1777)
    (folder / "etc" / "os-release").write_text('ID=rocky\nVERSION_ID="9.4"\n')
    return folder


def add_torch(tree: Path, version: str = "2.8.0+cpu") -> None:
    """Put a torch for CPUs into the tree's Python."""
    torch = tree / _LIBRARY.relative_to("/").parent / "python3" / "dist-packages" / "torch"
    (torch / "distributed").mkdir(parents=True)
    (torch / "distributed" / "__init__.py").write_text("def is_available(): return True\n")
    (torch / "__init__.py").write_text(_TORCH)
    (torch / "linalg.py").write_text(_LINALG)
    (torch / "version.py").write_text(f"__version__ = {version!r}\ncuda = None\nhip = None\n")


def pack_system(
    image: Path, engine: str, file: Path, *more: str, without: Sequence[str] = ()
) -> Path:
    """Pack the system of our image and more of its folders, without our own files."""
    inside = [engine, "exec", "--containall", "--no-home", str(image), "tar", "-C", "/", "-c"]
    left_out = [f"--exclude={name}" for name in (*_OURS, *without)]
    with file.open("wb") as output:
        subprocess.run([*inside, *left_out, *_SYSTEM, *more], stdout=output, check=True)
    return file


def layer(*trees: Path) -> bytes:
    """Make a layer of an image; files of the last tree hide files of the others."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for tree in trees:
            tar.add(tree, arcname=".")
    return data.getvalue()


@dataclass(frozen=True, kw_only=True)
class Layout:
    """An image in a folder (OCI image layout), which skopeo copies elsewhere."""

    folder: Path
    processor: str = "amd64"
    environment: Mapping[str, str] = field(default_factory=dict)
    # Commands that made its layers; may be left out.
    history: Sequence[Mapping[str, object]] = ()

    def write(self, *trees: Path) -> Layout:
        """Write a layer of each tree or tar file, not packed: packing is not under test."""
        blobs = self.folder / "blobs" / "sha256"
        blobs.mkdir(parents=True)
        layers = [self._layer(tree) for tree in trees]
        rootfs = {"type": "layers", "diff_ids": [blob["digest"] for blob in layers]}
        env = [f"{name}={value}" for name, value in self.environment.items()]
        config: dict[str, object] = {
            "architecture": self.processor,
            "os": "linux",
            "config": {"Env": env},
        }
        if self.history:
            config["history"] = list(self.history)
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": self._json(_CONFIG, {**config, "rootfs": rootfs}),
            "layers": layers,
        }
        entry = self._json(_MANIFEST, manifest)
        (self.folder / "index.json").write_text(
            json.dumps({"schemaVersion": 2, "manifests": [entry]})
        )
        (self.folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        return self

    def _layer(self, tree: Path) -> dict[str, object]:
        folder = self.folder / "layer.tar"
        if tree.is_file():
            return self._blob(_LAYER, tree.rename(folder))
        with tarfile.open(folder, "w") as tar:
            tar.add(tree, arcname=".")
        return self._blob(_LAYER, folder)

    def _json(self, media: str, document: object) -> dict[str, object]:
        path = self.folder / "document.json"
        path.write_text(json.dumps(document))
        return self._blob(media, path)

    def _blob(self, media: str, folder: Path) -> dict[str, object]:
        name, size = _digest(folder), folder.stat().st_size
        folder.rename(self.folder / "blobs" / "sha256" / name)
        return {"mediaType": media, "digest": f"sha256:{name}", "size": size}

    @property
    def name(self) -> str:
        return f"oci:{self.folder}"

    def copy(self, target: str, *options: str) -> str:
        """Copy it with skopeo; returns how the copy is named."""
        settings = self.folder.parent / "containers.conf"
        settings.write_text(LIMITS)
        words = ["skopeo", "copy", "--quiet", "--dest-tls-verify=false", *options]
        done = run(
            [*words, self.name, target], env={**os.environ, "CONTAINERS_CONF": str(settings)}
        )
        assert done.returncode == 0, done.stderr
        return target
