"""A conda channel in a folder: a small python of this machine, and pip."""

from __future__ import annotations

import ensurepip
import hashlib
import io
import json
import os
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

VERSION = sysconfig.get_python_version()
PACKAGES = f"lib/python{VERSION}/site-packages"
# Clients replace it by the environment's own path, in every file of the list.
PLACEHOLDER = "/placeholder/of/the/prefix"


@dataclass(kw_only=True)
class Package:
    """A package with files and links; `subdir` is the platform, or noarch."""

    name: str
    version: str
    depends: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    executable: set[str] = field(default_factory=set)

    @property
    def index(self) -> dict[str, object]:
        facts = {"name": self.name, "version": self.version, "depends": self.depends}
        return {**facts, "build": "0", "build_number": 0, "subdir": subdir()}

    def paths(self) -> list[dict[str, object]]:
        files = [self._path(path, data) for path, data in self.files.items()]
        return files + [dict[str, object](_path=x, path_type="softlink") for x in self.links]

    def _path(self, path: str, data: bytes) -> dict[str, object]:
        digest = hashlib.sha256(data).hexdigest()
        entry = {"_path": path, "path_type": "hardlink", "sha256": digest}
        if PLACEHOLDER.encode() in data:
            entry |= {"prefix_placeholder": PLACEHOLDER, "file_mode": "text"}
        return {**entry, "size_in_bytes": len(data)}

    def archive(self) -> bytes:
        """Return the .tar.bz2 of the package."""
        paths = {"paths": self.paths(), "paths_version": 1}
        names = "\n".join([*self.files, *self.links, ""])
        notes = {"index.json": json.dumps(self.index), "paths.json": json.dumps(paths)}
        infos = {**notes, "files": names}
        members = {f"info/{name}": text.encode() for name, text in infos.items()} | self.files
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:bz2", compresslevel=1) as tar:
            for name, data in members.items():
                member = tarfile.TarInfo(name)
                member.size, member.mode = len(data), 0o755 if name in self.executable else 0o644
                tar.addfile(member, io.BytesIO(data))
            for name, target in self.links.items():
                member = tarfile.TarInfo(name)
                member.type, member.linkname = tarfile.SYMTYPE, target
                tar.addfile(member)
        return buffer.getvalue()


def subdir() -> str:
    return f"linux-{'64' if os.uname().machine == 'x86_64' else os.uname().machine}"


def python() -> Package:
    """Return a package whose interpreter is this machine's, with packages of its own."""
    home = Path(sys.base_prefix) / "bin"
    text = f"home = {home}\ninclude-system-site-packages = false\nversion = {VERSION}\n"
    # A file of its own says where it is, as the scripts of packages do.
    note = f"this environment is {PLACEHOLDER}\n"
    return Package(
        name="python",
        version=f"{VERSION}.{sys.version_info.micro}",
        files={"pyvenv.cfg": text.encode(), "share/prefix": note.encode()},
        links={"bin/python": str(home / f"python{VERSION}"), "bin/python3": "python"},
    )


def pip() -> Package:
    """Return the pip that Python brings."""
    wheel = next((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        files = {f"{PACKAGES}/{name}": archive.read(name) for name in archive.namelist()}
    script = f"#!{PLACEHOLDER}/bin/python\nfrom pip._internal.cli.main import main\nmain()\n"
    return Package(
        name="pip",
        version=wheel.name.split("-")[1],
        depends=["python"],
        files={**files, "bin/pip": script.encode()},
        executable={"bin/pip"},
    )


def make_channel(folder: Path) -> None:
    """Write the packages and the index of the channel."""
    entries = {}
    for package in (python(), pip()):
        data = package.archive()
        file = f"{package.name}-{package.version}-0.tar.bz2"
        digests = {"md5": hashlib.md5(data).hexdigest(), "sha256": hashlib.sha256(data).hexdigest()}  # noqa: S324
        entries[file] = {**package.index, **digests, "size": len(data)}
        path = folder / subdir() / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for platform, packages in ((subdir(), entries), ("noarch", {})):
        index = {"info": {"subdir": platform}, "packages": packages, "packages.conda": {}}
        (folder / platform).mkdir(parents=True, exist_ok=True)
        (folder / platform / "repodata.json").write_text(json.dumps(index))
