"""A pixi.lock: its environment `default` for Linux, wheels and packages of conda."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from packaging.pylock import (
    Package,
    PackageDirectory,
    PackageSdist,
    PackageVcs,
    PackageWheel,
    Pylock,
    PylockValidationError,
)
from packaging.utils import canonicalize_name
from packaging.version import Version

from sifwright.extend.locks.model import AGAIN, Lock, read_yaml, refused
from sifwright.system.terminal import first_names

_KINDS = ("pypi", "conda", "conda_source")
_FORMATS = (5, 6, 7)
_PLATFORMS = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}
# The image's own do for these two, and for what they alone need.
_OF_IMAGE = ("python", "pip")
_SHOWN = 5
_UPDATE = "Run 'pixi lock' with a current pixi."


def read(text: str, path: Path, processor: str, *, conda: bool) -> Lock:
    """Read the file for a processor; raises `UsageError`. `conda`: the image has conda."""
    data = read_yaml(text, path)
    if data.get("version") not in _FORMATS:
        message = f"format {data.get('version')} of pixi.lock; formats 5 to 7 can be read"
        raise refused(path, message, _UPDATE)
    try:
        entries = _entries(data, path, _PLATFORMS.get(processor, processor))
        wheels = [_package(item) for item in entries if "pypi" in item]
        pylock = Pylock(created_by="pixi", packages=wheels, lock_version=Version("1.0"))
        pylock.validate()
        of_conda = [item for item in entries if "pypi" not in item]
        packages = {_name(item): item for item in of_conda if not _is_project(item)}
        lock = _lock(path, pylock, packages, conda)
        own = [
            f"{path}: {item['name']} is the project itself, and not installed"
            for item in filter(_is_project, of_conda)
        ]
        return replace(lock, notes=(*lock.notes, *own))
    except (LookupError, TypeError, AttributeError, ValueError, PylockValidationError) as error:
        raise refused(path, f"not a lock file of pixi: {error}", AGAIN) from None


def _entries(data: Mapping[str, Any], path: Path, platform: str) -> list[Mapping[str, Any]]:
    """Return the packages of the environment, as the list at the end of the file has them."""
    platforms = data["environments"]["default"]["packages"]
    # From format 7 on, a platform may have a name of its own.
    aliases = {
        str(item["name"])
        for item in data.get("platforms", ())
        if str(item.get("subdir", item["name"])) == platform
    }
    name = next((name for name in platforms if name in {platform, *aliases}), None)
    if name is None:
        others = f", only for {', '.join(sorted(platforms))}" if platforms else ""
        message = f"its environment 'default' locks nothing for {platform}{others}"
        fix = f"Run 'pixi workspace platform add {platform}', which locks again."
        raise refused(path, message, fix)
    packages = map(_of_format_6, data["packages"])
    listed = {_key(item): item for item in packages}
    return [listed[_key(item)] for item in platforms[name]]


def _of_format_6(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a package of format 5 as the later ones have it."""
    if "kind" not in item:
        return item
    return {**item, item["kind"]: item["url"] if "url" in item else item["path"]}


def _key(item: Mapping[str, Any]) -> tuple[str, str]:
    kind = next(kind for kind in _KINDS if kind in item)
    return kind, str(item[kind])


def _is_project(item: Mapping[str, Any]) -> bool:
    """Return whether pixi builds the package from the folder of the lock."""
    return _key(item)[1].rstrip("/") in {"", "."}


def _package(item: Mapping[str, Any]) -> Package:
    """Return the package as pylock.toml has it."""
    url, name = str(item["pypi"]), canonicalize_name(item["name"])
    version = Version(str(item["version"])) if "version" in item else None
    address = url.removeprefix("direct+")
    hashes = {"sha256": item["sha256"]} if "sha256" in item else {"none": ""}
    if address.startswith("git+"):
        plain, _, commit = address.removeprefix("git+").partition("#")
        return Package(name=name, vcs=PackageVcs(type="git", url=plain, commit_id=commit))
    if "://" not in address:
        return Package(name=name, version=version, directory=PackageDirectory(path=address))
    if urlsplit(address).path.endswith(".whl"):
        wheel = PackageWheel(url=address, hashes=hashes)
        return Package(name=name, version=version, wheels=[wheel])
    return Package(name=name, version=version, sdist=PackageSdist(url=address, hashes=hashes))


def _lock(path: Path, pylock: Pylock, packages: Mapping[str, Any], conda: bool) -> Lock:  # noqa: FBT001
    version = _parts(packages["python"])[1] if "python" in packages else ""
    python = ".".join(version.split(".")[:2])
    if conda and packages:
        return Lock(path=path, pylock=pylock, python=python, conda=_options(packages, path, python))
    own = _needed(packages)
    if others := sorted(packages.keys() - own):
        message = f"it locks packages of conda ({first_names(others, _SHOWN)})"
        fix = "Take them from PyPI (pixi add --pypi NAME), or extend an image with the layer conda."
        raise refused(path, f"{message}, and the image has no conda", fix)
    note = f"{path}: the image's own Python {python} does for that of conda"
    return Lock(path=path, pylock=pylock, python=python, notes=(note,) if python else ())


def _needed(packages: Mapping[str, Any]) -> set[str]:
    """Return Python and pip with all they need."""
    known: set[str] = set()
    names = list(_OF_IMAGE)
    while names:
        name = names.pop()
        if name not in known and name in packages:
            known.add(name)
            names += [str(line).split()[0] for line in packages[name].get("depends", ())]
    return known


def _options(packages: Mapping[str, Any], path: Path, python: str) -> dict[str, str]:
    """Return the options of layer conda that make this environment."""
    if torch := [name for name in packages if name.startswith(("pytorch", "libtorch"))]:
        fix = "Leave it out of pixi.toml: the image has its own torch."
        raise refused(path, f"it locks conda's {torch[0]}", fix)
    if bare := [name for name, item in packages.items() if not item.get("md5")]:
        raise refused(path, f"it has no hash of conda's {bare[0]}", _UPDATE)
    if not python:
        raise refused(path, "it locks no Python of conda", "Run 'pixi add python'.")
    explicit = " ".join(f"{item['conda']}#{item['md5']}" for item in packages.values())
    return {"explicit": explicit, "python": python}


def _name(item: Mapping[str, Any]) -> str:
    """Return the name of a package, or all that is known of one that pixi builds."""
    parts = _parts(item)
    return parts[0] if len(parts) == 3 else _key(item)[1]  # noqa: PLR2004


def _parts(item: Mapping[str, Any]) -> Sequence[str]:
    """Return name, version and build, as the name of the file has them."""
    file = urlsplit(_key(item)[1]).path.rpartition("/")[2]
    return file.removesuffix(".conda").removesuffix(".tar.bz2").rsplit("-", 2)
