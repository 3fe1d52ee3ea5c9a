"""The files of a lock that an image gets, as requirements with the hashes of these files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from urllib.parse import urlsplit

from packaging.markers import Environment
from packaging.pylock import (
    Package,
    PackageArchive,
    PackageDirectory,
    PackageSdist,
    PackageVcs,
    PackageWheel,
    Pylock,
)
from packaging.pylock import PylockSelectError as SelectError
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, create_compatible_tags_selector
from packaging.utils import canonicalize_name, parse_wheel_filename

from sifwright.errors import Problem, UsageError
from sifwright.extend import refusals
from sifwright.extend.locks.model import AGAIN, Lock, refused
from sifwright.extend.read_requirements import ParsedRequirement, Requirements
from sifwright.host.network import sdist, wheel_tags

# Digests that pip compares; a lock may have others beside them.
_HASHES = ("sha256", "sha384", "sha512")
_NO_SDIST = PackageSdist(name="none", hashes={"none": ""})
# The first and the last that there may be.
_PATCHES = ("0", "99")
_OTHERS = (
    "Name a lock of other packages; extras, and groups that are not the lock's default, are left"
    " out."
)
_WHEEL = "Build a wheel of it, put it on an index, and lock that; or leave the package out."


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """The environment of an image, and the versions of packages that it keeps."""

    python: str
    processor: str
    held: Mapping[str, str]


def requirements_of(lock: Lock, target: Target) -> tuple[Requirements, list[str]]:
    """Return what is to be installed, and notes; raises `UsageError` with all that is refused."""
    if lock.python:
        _check_python(lock, SpecifierSet(f"=={lock.python}.*"), target)
    chooser = _Chooser(lock=lock, target=target)
    for item in lock.hashed:
        chooser.add(item)
    if lock.pylock:
        _check_python(lock, lock.pylock.requires_python or SpecifierSet(), target)
        for entry in _packages(lock, lock.pylock, target, chooser.tags):
            chooser.add_package(*entry)
    if chooser.problems:
        raise UsageError(*chooser.problems)
    if not chooser.wanted and not lock.conda:
        raise refused(lock.path, "it locks no Python package for this image", _OTHERS)
    requirements = Requirements(wanted=chooser.wanted, is_locked=True, conda=lock.conda)
    return requirements, [*lock.notes, *chooser.notes]


def _python_fix(target: Target) -> str:
    return (
        f"The image has Python {target.python}: lock for it, or set another one below, such as"
        " --set base-debian.suite=…."
    )


def _packages(
    lock: Lock, pylock: Pylock, target: Target, tags: Sequence[Tag]
) -> Iterator[tuple[Package, object, bool]]:
    """Yield packages, each with its source, and whether the image's own Python decides on it.

    Only major and minor of this Python are known, and a marker may hold for some releases.
    """
    # A package without a wheel for the image is refused later, with all others.
    packages = [
        replace(package, requires_python=None, sdist=package.sdist or _NO_SDIST)
        if package.wheels
        else package
        for package in pylock.packages
    ]
    known = replace(pylock, requires_python=None, packages=packages)
    try:
        first, latest = (
            {id(entry[0]): entry for entry in known.select(environment=environment, tags=tags)}
            for environment in (_environment(target, patch) for patch in _PATCHES)
        )
    except SelectError as error:
        raise refused(lock.path, str(error), _python_fix(target)) from None
    for key, (package, source) in (first | latest).items():
        yield package, source, key not in first or key not in latest


def _check_python(lock: Lock, wanted: SpecifierSet, target: Target) -> None:
    """Refuse a lock for another Python."""
    if not any(wanted.contains(f"{target.python}.{patch}") for patch in _PATCHES):
        raise refused(lock.path, f"it is for Python {wanted}", _python_fix(target))


def _environment(target: Target, patch: str) -> Environment:
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{target.python}.{patch}",
        "os_name": "posix",
        "platform_machine": target.processor,
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": f"{target.python}.{patch}",
        "platform_python_implementation": "CPython",
        "python_version": target.python,
        "sys_platform": "linux",
    }


@dataclass(kw_only=True)
class _Chooser:
    """A chooser that collects problems, so that one package does not hide the next."""

    lock: Lock
    target: Target
    wanted: list[ParsedRequirement] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @cached_property
    def tags(self) -> Sequence[Tag]:
        return tuple(wheel_tags.possible(self.target.python, self.target.processor))

    @cached_property
    def index(self) -> str:
        """Return the index that pip asks by default."""
        return sdist.default_index().rstrip("/")

    def refuse(self, message: str, fix: str) -> None:
        self.problems.append(Problem(where=str(self.lock.path), what=message, fix=fix))

    def add(self, item: ParsedRequirement) -> None:
        if not self.is_held(item.requirement.name, item.requirement.specifier):
            self.wanted.append(item)

    def add_package(self, package: Package, source: object, depends: bool) -> None:  # noqa: FBT001
        """Add a package, unless it is the image's own; `depends`: on its marker."""
        if isinstance(source, PackageDirectory) and source.path.rstrip("/") in {"", "."}:
            self.notes.append(
                f"{self.lock.path}: {package.name} is the project itself, and not installed"
            )
        elif package.version and self.is_held(package.name, SpecifierSet(f"=={package.version}")):
            pass
        elif isinstance(source, PackageWheel):
            self.add_wheels(package, source, depends=depends)
        elif isinstance(source, PackageArchive) and urlsplit(source.url or "").path.endswith(
            ".whl"
        ):
            self.add_address(package, source, depends=depends)
        else:
            self.refuse(f"{package.name} {_reason(package, source, self.target)}", _WHEEL)

    def is_held(self, name: str, wanted: SpecifierSet) -> bool:
        """Return whether the image has it; another version of it is refused."""
        name = canonicalize_name(name)
        held = self.target.held.get(name)
        if held and wanted.contains(held, prereleases=True):
            self.notes.append(f"{self.lock.path}: the image keeps its own {name} {held}")
        elif held:
            public = held.partition("+")[0]
            fix = f"Lock {name}=={public}, or --set another version below it."
            self.refuse(f"it has {name} {wanted}, and the image has {name} {held}", fix)
        return bool(held)

    def add_wheels(self, package: Package, best: PackageWheel, *, depends: bool) -> None:
        """Add a package of an index: pip takes that of these wheels that fits the image best."""
        if package.index and package.index.rstrip("/") != self.index:
            self.add_address(package, best, depends=depends)
            return
        select = create_compatible_tags_selector(self.tags)
        named = [(wheel, parse_wheel_filename(wheel.filename)[3]) for wheel in package.wheels or ()]
        hashes = [digest for wheel in select(named) if (digest := _hash(wheel))]
        version = parse_wheel_filename(best.filename)[1]
        self.keep(package, f"{package.name}=={version}", hashes, depends=depends)

    def add_address(
        self, package: Package, source: PackageWheel | PackageArchive, *, depends: bool
    ) -> None:
        """Add a wheel that this machine's settings of pip need not lead to."""
        digest = _hash(source)
        address = f"{source.url}#{digest.replace(':', '=')}"
        hashes = [digest] if digest else []
        self.keep(package, f"{package.name} @ {address}", hashes, depends=depends)

    def keep(self, package: Package, text: str, hashes: Sequence[str], *, depends: bool) -> None:
        if not hashes:
            self.refuse(f"{package.name} has no hash that pip compares", "Lock it with sha256.")
            return
        try:
            requirement = Requirement(f"{text} ; {package.marker}" if depends else text)
        except InvalidRequirement:
            self.refuse(f"{package.name} has an address that is none", AGAIN)
            return
        if problem := refusals.of_url(requirement, hashes) or refusals.of_text(str(requirement)):
            self.refuse(problem.what, problem.fix)
            return
        own = () if requirement.url else tuple(dict.fromkeys(hashes))
        where = str(self.lock.path)
        self.wanted.append(ParsedRequirement(requirement=requirement, hashes=own, where=where))


def _hash(file: PackageWheel | PackageArchive) -> str:
    return next((f"{kind}:{file.hashes[kind]}" for kind in _HASHES if kind in file.hashes), "")


def _reason(package: Package, source: object, target: Target) -> str:
    if isinstance(source, PackageVcs):
        return "comes from git, and pip cannot compare a commit with a hash"
    if isinstance(source, PackageDirectory):
        return f"is a folder of another machine ({source.path})"
    if package.wheels:
        return f"has no wheel for Python {target.python} on Linux, {target.processor}"
    return "has no wheel, and what it needs to build one is not locked"
