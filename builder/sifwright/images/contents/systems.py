"""The system in an image: distribution, C library, CUDA, ROCm, MPI and plugins, from its files."""

import json
import posixpath
import re
import shlex
from collections.abc import Collection, Iterator, Mapping

from sifwright.images.contents.image_facts import Plugin
from sifwright.images.contents.image_tree import ImageTree

_TWO = re.compile(r"(\d{1,9}\.\d{1,9})")
_PC_VERSION = re.compile(r"^Version:\s*(\S+)", re.MULTILINE)
_MPI_LIBRARY = re.compile(r"(?:.*/)?libmpi(?:ch)?\.so[.\d]*")
_LIBCUDART = re.compile(r"(?:.*/)?libcudart\.so\.(\d{1,9}\.\d{1,9})(?:\.[.\d]*)?")
_CUDA_FOLDER = re.compile(r"usr/local/cuda-(\d{1,9}\.\d{1,9})")
_CONDA_CUDA = re.compile(
    r"(?:.*/)?conda-meta/(?:cuda-cudart|cudatoolkit)-(\d{1,9}\.\d{1,9})(?!\d)[^/]*\.json"
)
_ROCM_FOLDER = re.compile(r"opt/rocm-(\d{1,9}\.\d{1,9})(?:\.[.\d]*)?")
_PLUGIN = re.compile(r"(?:.*/)?lib(?:nccl|rccl)-net(?P<name>[^/]*)\.so[.\d]*")
# Variables that make NCCL load a plugin that it would not find by itself.
_SET_BY = ("NCCL_NET_PLUGIN", "RCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN")


def release(tree: ImageTree) -> dict[str, str]:
    """Return the values of os-release(5)."""
    text = tree.text("etc/os-release") or tree.text("usr/lib/os-release") or ""
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition("=")
        try:
            values[name.strip()] = "".join(shlex.split(value))
        except ValueError:
            continue
    return values


def libc(tree: ImageTree) -> str:
    """Return the C library and its version; musl's is known to its package manager only."""
    for path, text in sorted(tree.files.items()):
        if match := re.search(rb"GNU C Library [^\n]{0,200}? version (\d{1,9}\.\d{1,9})", text):
            return f"glibc {match[1].decode()}" if "/libc" in path else ""
    if not any("/ld-musl-" in f"/{path}" for path in (*tree.files, *tree.links)):
        return ""
    database = tree.text("lib/apk/db/installed") or tree.text("usr/lib/apk/db/installed") or ""
    match_text = re.search(r"^P:musl\nV:([^-\n]+)", database, re.MULTILINE)
    return f"musl {match_text[1]}" if match_text else "musl"


def cuda(tree: ImageTree, environment: Mapping[str, str]) -> str:
    """Return the version of the CUDA toolkit, else of the runtime library."""
    for path in ("usr/local/cuda/version.json", "usr/local/cuda/version.txt"):
        if version := _cuda_version(tree.text(path) or ""):
            return version
    if match := _CUDA_FOLDER.fullmatch(tree.real("usr/local/cuda")):
        return match[1]
    for pattern in (_CUDA_FOLDER, _LIBCUDART, _CONDA_CUDA):
        if version := _newest(pattern, tree):
            return version
    return _two(environment.get("CUDA_VERSION", ""))


def _cuda_version(text: str) -> str:
    """Return the version of version.json, or of version.txt (before CUDA 11)."""
    try:
        return _two(str(json.loads(text)["cuda"]["version"]))
    except (ValueError, LookupError, TypeError, RecursionError):
        match = re.match(r"CUDA Version (\d{1,9}\.\d{1,9})", text)
        return match[1] if match else ""


def rocm(tree: ImageTree, environment: Mapping[str, str]) -> str:
    for name in ("version", "version-dev"):
        if version := _two(tree.text(f"opt/rocm/.info/{name}") or ""):
            return version
    return _newest(_ROCM_FOLDER, tree) or _two(environment.get("ROCM_VERSION", ""))


def mpi(tree: ImageTree) -> tuple[str, ...]:
    """Return each MPI that has a library or a file for pkg-config."""
    return tuple(sorted(set(_mpi(tree))))


def _mpi(tree: ImageTree) -> Iterator[str]:
    for path, data in tree.files.items():
        text = data.decode("utf-8", "replace")
        if path.endswith(("/pkgconfig/ompi.pc", "/pkgconfig/mpich.pc")):
            match = _PC_VERSION.search(text)
            name = "Open MPI" if path.endswith("ompi.pc") else "MPICH"
            yield f"{name} {match[1] if match else ''}".strip()
        elif _MPI_LIBRARY.fullmatch(path):
            mark, _, version = text.partition("\n")
            name = "Open MPI" if mark.startswith("Open MPI") else "MPICH" if mark else ""
            if name:
                yield f"{name} {version.lstrip('v')}".strip()


def plugins(tree: ImageTree, environment: Mapping[str, str]) -> tuple[Plugin, ...]:
    """Return the libraries for NCCL and RCCL, each file once."""
    by_file: dict[str, Plugin] = {}
    folders = frozenset(environment.get("LD_LIBRARY_PATH", "").split(":"))
    for path in sorted((*tree.files, *tree.links)):
        match = _PLUGIN.fullmatch(path)
        real = tree.real(path)
        if match and real in tree.files:
            by = next(_set_by(path, match["name"], environment, folders), "")
            if real not in by_file or (by and not by_file[real].set_by):
                by_file[real] = Plugin(path=f"/{path}", set_by=by)
    return tuple(sorted(by_file.values(), key=lambda plugin: plugin.path))


def _set_by(
    path: str, name: str, environment: Mapping[str, str], folders: Collection[str]
) -> Iterator[str]:
    """Yield the variables that lead to a plugin: name, file, or folder of the linker's path."""
    file = posixpath.basename(path)
    for variable in _SET_BY:
        value = environment.get(variable, "")
        is_named = value in {name.lstrip("-"), f"/{path}"} or file.startswith(value)
        if value and is_named:
            yield f"{variable}={value}"
    folder = f"/{posixpath.dirname(path)}"
    if not name and folder in folders:
        yield f"LD_LIBRARY_PATH={folder}"


def _newest(pattern: re.Pattern[str], tree: ImageTree) -> str:
    matches = (pattern.fullmatch(path) for path in (*tree.files, *tree.links))
    versions = {match[1] for match in matches if match}
    return max(versions, key=lambda version: [*map(int, version.split("."))], default="")


def _two(version: str) -> str:
    match = _TWO.match(version.strip())
    return match[1] if match else ""
