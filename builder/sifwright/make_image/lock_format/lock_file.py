"""The lock file: a pylock.toml (PEP 751) with all that is no wheel in its table tool.sifwright."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import tomli_w
from packaging.pylock import Package, PackageWheel, Pylock, PylockValidationError
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from sifwright.errors import BuildError
from sifwright.make_image.lock_format import check_lock
from sifwright.system import files, small_file

FORMAT = 1
# The most bytes of a lock, which has some hundred KB.
_MOST_BYTES = 64 << 20
_AGAIN = "Write it again with 'sifwright lock'."


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """A wheel; `url` is where it came from, without a login, or empty for a folder."""

    name: str
    version: str
    file: str
    sha256: str
    url: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Deb:
    """A package of Debian or Ubuntu at `path` of an archive; in the base image without one.

    `only_build`: the build needs it, and the image has none.
    """

    name: str
    version: str
    architecture: str
    archive: str = ""
    suite: str = ""
    path: str = ""
    size: int = 0
    sha256: str = ""
    priority: str = ""
    only_build: bool = False

    @property
    def file(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rpm:
    """An RPM package of the base image, which is locked by its digest."""

    name: str
    version: str
    architecture: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Archive:
    """A suite of an archive as it was; `address` is `debian`, `debian-security` or an address."""

    address: str
    suite: str
    components: str
    date: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedSource:
    """A source of a layer: kind git with a commit, others with a sha256."""

    layer: str
    name: str
    kind: str
    address: str
    ref: str
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Unlocked:
    """A Python package that no wheel gives: compiled by a layer, or in the base image."""

    name: str
    version: str


@dataclass(frozen=True, kw_only=True)
class Lock:
    """All that an image is built from. `layers` has the id of each step, `tools` versions.

    `facts` are those of an inspected base image, with which the plan is made again.
    """

    site: str
    image: str
    plan: str
    epoch: int
    processor: str
    python: str
    base: Mapping[str, str]
    layers: Mapping[str, str]
    tools: Mapping[str, str]
    wheels: tuple[Wheel, ...] = ()
    debs: tuple[Deb, ...] = ()
    rpms: tuple[Rpm, ...] = ()
    archives: tuple[Archive, ...] = ()
    sources: tuple[LockedSource, ...] = ()
    unlocked: tuple[Unlocked, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def fetched_debs(self) -> tuple[Deb, ...]:
        """Return the packages that a build downloads."""
        return tuple(deb for deb in self.debs if deb.sha256)

    @cached_property
    def digest(self) -> str:
        """Return the digest of the whole file: locked builds share results by it."""
        return hashlib.sha256(text(self).encode()).hexdigest()


def text(lock: Lock) -> str:
    """Return the file's text."""
    tool = {
        "format": FORMAT,
        **{name: getattr(lock, name) for name in _SIMPLE},
        **({"facts": dict(lock.facts)} if lock.facts else {}),
        **{
            name: [asdict(entry, dict_factory=_filled) for entry in getattr(lock, attribute)]
            for name, (attribute, _) in _TABLES.items()
            if getattr(lock, attribute)
        },
    }
    pylock = Pylock(
        lock_version=Version("1.0"),
        created_by="sifwright",
        packages=[_package(wheel) for wheel in lock.wheels],
        tool={"sifwright": tool},
    )
    return tomli_w.dumps(dict(pylock.to_dict()))


_SIMPLE = (
    *("site", "image", "plan", "epoch", "processor", "python"),
    *("base", "layers", "tools"),
)


# The tables of tool.sifwright: the attribute of the lock, and the class of its entries.
_TABLES = {
    "deb": ("debs", Deb),
    "rpm": ("rpms", Rpm),
    "archive": ("archives", Archive),
    "source": ("sources", LockedSource),
    "unlocked": ("unlocked", Unlocked),
}


def _filled(parts: Iterable[tuple[str, object]]) -> dict[str, object]:
    return {name: value for name, value in parts if value}


def _package(wheel: Wheel) -> Package:
    locked = PackageWheel(
        name=wheel.file,
        hashes={"sha256": wheel.sha256},
        url=wheel.url or None,
        path=None if wheel.url else f"wheels/{wheel.file}",
    )
    name = canonicalize_name(wheel.name)
    return Package(name=name, version=Version(wheel.version), wheels=[locked])


def write(lock: Lock, path: Path) -> None:
    """Write a lock whole or not at all, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, text(lock).encode(), mode=0o644)


def read(path: Path) -> Lock:
    """Read a lock; raises `BuildError` for a file that is none, or of another format."""
    try:
        return parse(small_file.read_text(path, _MOST_BYTES), str(path))
    except FileNotFoundError:
        fix = "Write it with 'sifwright lock'."
        raise BuildError.of("there is no lock", where=str(path), fix=fix) from None
    except (OSError, UnicodeDecodeError) as error:
        message = f"the lock cannot be read: {error}"
        raise BuildError.of(message, where=str(path), fix=_AGAIN) from None


def parse(data: str, where: str) -> Lock:
    """Return the lock of a text; raises `BuildError`."""
    try:
        return _parsed(data)
    except (ValueError, KeyError, TypeError, PylockValidationError, InvalidVersion) as error:
        message = f"is no lock that can be used: {error}"
        raise BuildError.of(message, where=where, fix=_AGAIN) from None


def _parsed(data: str) -> Lock:
    pylock = Pylock.from_dict(tomllib.loads(data))
    tool: Mapping[str, Any] = (pylock.tool or {}).get("sifwright", {})
    if tool.get("format") != FORMAT:
        this = f"this release reads format {FORMAT}"
        raise ValueError(f"it has format {tool.get('format', 'none')}, and {this}")
    wheels = tuple(_wheel(package) for package in pylock.packages)
    facts = {**{name: tool[name] for name in _SIMPLE}, "facts": tool.get("facts", {})}
    check_lock.check_types(facts)
    entries: dict[str, Any] = {
        attribute: _entries(kind, tool.get(name, ())) for name, (attribute, kind) in _TABLES.items()
    }
    lock = Lock(**facts, wheels=wheels, **entries)
    _check(lock)
    return lock


def _entries(kind: type[Any], tables: Iterable[Mapping[str, Any]]) -> tuple[Any, ...]:
    entries = tuple(kind(**table) for table in tables)
    for entry in entries:
        for part in fields(entry):
            value = getattr(entry, part.name)
            if type(value).__name__ != part.type or "\n" in str(value):
                raise ValueError(f"{kind.__name__.lower()} {entry}: {part.name} is no {part.type}")
    return entries


def _wheel(package: Package) -> Wheel:
    (locked,) = package.wheels or ()
    return Wheel(
        name=package.name,
        version=str(package.version),
        file=locked.filename,
        sha256=locked.hashes["sha256"],
        url=locked.url or "",
    )


def _check(lock: Lock) -> None:
    """Raise `ValueError` for names that lead elsewhere and digests that are none."""
    check_lock.check_files((deb.file, deb.sha256) for deb in lock.fetched_debs)
    check_lock.check_files((wheel.file, wheel.sha256) for wheel in lock.wheels)
    check_lock.check_folders([lock.processor, *(item.suite for item in lock.archives)])
    for archive in lock.archives:
        check_lock.check_folders(archive.components.split())
        check_lock.check_date(archive.date)
    for source in lock.sources:
        check_lock.check_source(source.kind, source.name, source.digest)
    check_lock.check_base(lock.base)
    check_lock.check_facts(lock.facts)
