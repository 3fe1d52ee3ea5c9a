"""A conda channel in a folder: a python that links to a system's own, pip, and a compiled package.

They have both formats of conda's packages: .tar.bz2, and .conda.
"""

from __future__ import annotations

import bz2
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

from tests.conftest import run

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

VERSION = sysconfig.get_python_version()
HOME = Path(sys.base_prefix) / "bin"
# Clients replace it by the path of the environment, in every file of the list. In programs it must
# be longer than this path: that of conda-build has 255 characters.
PLACEHOLDER = "/placeholder/of/the/prefix".ljust(255, "_")
OLD, NEW = ".tar.bz2", ".conda"
# A module of Python that returns the path for which it was compiled.
COMPILED = f"""
#include <Python.h>
static const char prefix[] = "{PLACEHOLDER}";
static PyObject *get(PyObject *module, PyObject *none) {{ return PyUnicode_FromString(prefix); }}
static PyMethodDef methods[] = {{{{"prefix", get, METH_NOARGS, ""}}, {{0}}}};
static struct PyModuleDef compiled = {{PyModuleDef_HEAD_INIT, "compiled", "", -1, methods}};
PyMODINIT_FUNC PyInit_compiled(void) {{ return PyModule_Create(&compiled); }}
"""


@dataclass(kw_only=True)
class Package:
    """A package with files and links; `subdir` is the platform, or noarch."""

    name: str
    version: str
    depends: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    executable: set[str] = field(default_factory=set)
    ending: str = NEW

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
            entry |= {"prefix_placeholder": PLACEHOLDER, "file_mode": _mode(data)}
        return {**entry, "size_in_bytes": len(data)}

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.version}-0"

    def archive(self) -> bytes:
        """Return the package: one archive by bzip2, or a zip with two by zstd."""
        paths = {"paths": self.paths(), "paths_version": 1}
        names = "\n".join([*self.files, *self.links, ""])
        notes = {"index.json": json.dumps(self.index), "paths.json": json.dumps(paths)}
        infos = {f"info/{name}": text.encode() for name, text in (notes | {"files": names}).items()}
        if self.ending == OLD:
            return bz2.compress(self._tar(infos | self.files, self.links), compresslevel=1)
        members = {
            "metadata.json": json.dumps({"conda_pkg_format_version": 2}).encode(),
            f"pkg-{self.stem}.tar.zst": zstd.compress(self._tar(self.files, self.links)),
            f"info-{self.stem}.tar.zst": zstd.compress(self._tar(infos, {})),
        }
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return buffer.getvalue()

    def _tar(self, files: dict[str, bytes], links: dict[str, str]) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name, data in files.items():
                member = tarfile.TarInfo(name)
                member.size, member.mode = len(data), 0o755 if name in self.executable else 0o644
                tar.addfile(member, io.BytesIO(data))
            for name, target in links.items():
                member = tarfile.TarInfo(name)
                member.type, member.linkname = tarfile.SYMTYPE, target
                tar.addfile(member)
        return buffer.getvalue()


def _mode(data: bytes) -> str:
    return "binary" if b"\0" in data else "text"


def subdir() -> str:
    return f"linux-{'64' if os.uname().machine == 'x86_64' else os.uname().machine}"


def python(home: Path, version: str) -> Package:
    """Return a package whose interpreter lies in a folder, with packages of its own."""
    text = f"home = {home}\ninclude-system-site-packages = false\nversion = {version}\n"
    # A file of its own says where it is, as the scripts of packages do.
    note = f"this environment is {PLACEHOLDER}\n"
    return Package(
        name="python",
        version=f"{version}.{sys.version_info.micro}",
        files={"pyvenv.cfg": text.encode(), "share/prefix": note.encode()},
        links={"bin/python": str(home / f"python{version}"), "bin/python3": "python"},
        ending=OLD,
    )


def pip(version: str) -> Package:
    """Return the pip that Python brings, for this version of it."""
    wheel = next((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        files = {f"{packages(version)}/{name}": archive.read(name) for name in archive.namelist()}
    script = f"#!{PLACEHOLDER}/bin/python\nfrom pip._internal.cli.main import main\nmain()\n"
    return Package(
        name="pip",
        version=wheel.name.split("-")[1],
        depends=["python"],
        files={**files, "bin/pip": script.encode()},
        executable={"bin/pip"},
    )


def compiled(folder: Path) -> Package:
    """Compile a module for the placeholder."""
    file = folder / f"compiled{sysconfig.get_config_var('EXT_SUFFIX')}"
    words = ["-shared", "-fPIC", "-I", sysconfig.get_path("include"), "-o", file]
    done = run(["cc", *words, "-x", "c", "-"], input=COMPILED)
    assert done.returncode == 0, done.stderr
    files = {f"{packages(VERSION)}/{file.name}": file.read_bytes()}
    return Package(name="compiled", version="1", depends=["python"], files=files)


def packages(version: str) -> str:
    """Return the folder of packages in an environment."""
    return f"lib/python{version}/site-packages"


def make_channel(folder: Path, home: Path = HOME, version: str = VERSION) -> None:
    """Write the packages and the index of a channel for the Python in a folder."""
    (folder / "noarch").mkdir(parents=True)
    (folder / subdir()).mkdir()
    entries: dict[str, dict[str, object]] = {OLD: {}, NEW: {}}
    for package in (python(home, version), pip(version), compiled(folder)):
        data = package.archive()
        file = f"{package.stem}{package.ending}"
        digests = {"md5": hashlib.md5(data).hexdigest(), "sha256": hashlib.sha256(data).hexdigest()}  # noqa: S324
        entries[package.ending][file] = {**package.index, **digests, "size": len(data)}
        (folder / subdir() / file).write_bytes(data)
    none: dict[str, dict[str, object]] = {OLD: {}, NEW: {}}
    for platform, packages in ((subdir(), entries), ("noarch", none)):
        index = {"info": {"subdir": platform}, "packages": packages[OLD]}
        index["packages.conda"] = packages[NEW]
        (folder / platform / "repodata.json").write_text(json.dumps(index))
