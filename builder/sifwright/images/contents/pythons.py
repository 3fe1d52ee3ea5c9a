"""The Pythons of an image in the order of its PATH, and torch in each."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from sifwright.images.contents.image_facts import Python, Torch
from sifwright.images.contents.image_tree import ImageTree

# Versions by folder.
_Versions = dict[str, set[str]]

# Search order of a shell: `command -v python || command -v python3`.
_NAMES = ("python", "python3")
# The one of a container with an image that sets none.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PROGRAM = re.compile(r"python(3\.\d{1,9})")
# Wrappers as layer base-image makes them.
_WRAPPER = re.compile(r"#!.*\n(?:#.*\n)*exec\s+['\"]?(/[^\s'\"]+/python[\d.]*)['\"]?\s")
# Files in an environment, with groups for its folder and the version.
_LIBRARY = re.compile(r"(?:(.*)/)?lib(?:64)?/python(3\.\d{1,9})/os\.py")
_CONDA = re.compile(r"(?:(.*)/)?conda-meta/python-(3\.\d{1,9})(?!\d)[^/]*\.json")
# Assignments in version.py: name, maybe a type, and a text.
_VERSION = re.compile(
    r"^(__version__|cuda|hip|rocm)\s*(?::[^=\n]*)?=\s*['\"]([^'\"\n]*)['\"]", re.MULTILINE
)


def pythons(tree: ImageTree, environment: Mapping[str, str]) -> tuple[Python, ...]:
    """Return the Pythons on PATH, the started one first, then the other environments."""
    by_prefix: dict[str, Python] = {}
    inside = [_inside(tree, pattern) for pattern in (_CONDA, _LIBRARY)]
    for path in (*_on_path(tree, environment.get("PATH") or PATH), *_environments(tree)):
        python = _python(tree, path, environment, inside)
        if python is not None:
            by_prefix.setdefault(python.prefix, python)
    return tuple(by_prefix.values())


def _on_path(tree: ImageTree, path: str) -> Iterator[str]:
    for name in _NAMES:
        for folder in path.split(":"):
            if folder.startswith("/"):
                yield posixpath.join(tree.real(folder), name)


def _environments(tree: ImageTree) -> Iterator[str]:
    for path in sorted(tree.files):
        for mark in ("/pyvenv.cfg", "/conda-meta/history"):
            if path.endswith(mark):
                yield f"{path.removesuffix(mark)}/bin/python"


def _python(
    tree: ImageTree, path: str, environment: Mapping[str, str], inside: Sequence[_Versions]
) -> Python | None:
    text = tree.text(path)
    if text is None:
        return None
    if wrapped := _WRAPPER.match(text):
        path = wrapped[1].lstrip("/")
        if tree.text(path) is None:
            return None
    prefix = _prefix(tree, path)
    kind = "system"
    if f"{prefix}/pyvenv.cfg" in tree.files:
        kind = "venv"
    elif f"{prefix}/conda-meta/history" in tree.files:
        kind = "conda"
    version = _python_version(tree, path, prefix, inside)
    return Python(
        path=f"/{path}",
        version=version,
        kind=kind,
        prefix=f"/{prefix}",
        torch=_torch(tree, prefix, version, environment),
    )


def _prefix(tree: ImageTree, path: str) -> str:
    """Return the prefix that Python finds: of a virtual environment its folder, else the link's."""
    own = tree.real(posixpath.dirname(posixpath.dirname(path)))
    if f"{own}/pyvenv.cfg" in tree.files:
        return own
    return posixpath.dirname(posixpath.dirname(tree.real(path)))


def _python_version(tree: ImageTree, path: str, prefix: str, inside: Sequence[_Versions]) -> str:
    if match := _PROGRAM.fullmatch(posixpath.basename(tree.real(path))):
        return match[1]
    settings = _settings(tree, prefix)
    if match := re.match(
        r"3\.\d{1,9}", settings.get("version") or settings.get("version_info", "")
    ):
        return match[0]
    for versions in inside:
        candidates = versions.get(prefix, set())
        if len(candidates) == 1:
            return next(iter(candidates))
    return ""


def _inside(tree: ImageTree, pattern: re.Pattern[str]) -> _Versions:
    """Return the versions that files in an environment are called after, by its folder."""
    versions: _Versions = defaultdict(set)
    for path in tree.files:
        if match := pattern.fullmatch(path):
            versions[match[1] or ""].add(match[2])
    return versions


def _settings(tree: ImageTree, prefix: str) -> dict[str, str]:
    lines = (tree.text(f"{prefix}/pyvenv.cfg") or "").splitlines()
    pairs = (line.partition("=") for line in lines)
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


def _torch(
    tree: ImageTree, prefix: str, version: str, environment: Mapping[str, str]
) -> Torch | None:
    for folder in _packages(tree, prefix, version, environment):
        text = tree.text(f"{folder}/torch/version.py")
        if text is not None:
            return _parsed(text)
    return None


def _packages(
    tree: ImageTree, prefix: str, version: str, environment: Mapping[str, str]
) -> Iterator[str]:
    """Yield the folders in which a Python looks for packages, in its order (sys.path)."""
    yield from filter(None, environment.get("PYTHONPATH", "").split(":"))
    yield from _places(prefix, version)
    settings = _settings(tree, prefix)
    if settings.get("include-system-site-packages", "").lower() == "true":
        yield from _places(posixpath.dirname(tree.real(settings.get("home", ""))), version)


def _places(prefix: str, version: str) -> list[str]:
    libs = (f"{prefix}/{lib}/python{version}" for lib in ("lib", "lib64"))
    return [
        # Debian has what pip installs in a place of its own.
        *([f"usr/local/lib/python{version}/dist-packages"] if prefix == "usr" else []),
        *(f"{lib}/{kind}-packages" for lib in libs for kind in ("site", "dist")),
        f"{prefix}/lib/python3/dist-packages",
    ]


def _parsed(text: str) -> Torch:
    parts = dict(_VERSION.findall(text))
    rocm = parts.get("rocm") or parts.get("hip", "")
    return Torch(
        version=parts.get("__version__", ""),
        cuda=parts.get("cuda", ""),
        rocm=".".join(rocm.split(".")[:2]),
    )
