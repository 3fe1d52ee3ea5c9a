"""Debian packages of an image, as the archives that apt used list them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.utils import parsedate_to_datetime

from sifwright.catalog.mirrors import load, redirect
from sifwright.catalog.processors import debian_architecture
from sifwright.errors import BuildError, MachineError, Problem
from sifwright.host.network import debian_archive
from sifwright.host.network.apt_mirror import DEBIAN, SECURITY
from sifwright.make_image.lock.installed import PackageKey
from sifwright.make_image.lock_format.lock_file import Archive, Deb

_LINE = re.compile(r"^deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)[ \t]*(.*)$", re.MULTILINE)
# Vendors' archives in their base images, from which no layer installs; as in apt-install.
_VENDORS = re.compile(r"https?://(?:developer\.download\.nvidia\.com|repo\.radeon\.com)(?:/.*)?")
_FIX = (
    "The image was built some time ago: 'sifwright lock --update' builds it from today's packages."
)


def archives(texts: Iterable[str], mirrors: Mapping[str, str]) -> list[Archive]:
    """Return the archives that apt's sources name; `mirrors` are those of a step's result.

    Debian's own have no address: each machine has its mirror. Archives that builds leave out are
    not among them.
    """
    listed = [line for text in texts for line in (*_LINE.findall(text), *_stanzas(text))]
    lines = [line for line in listed if not _is_left_out(line[0])]
    joined: dict[tuple[str, str], str] = {}
    for address, suite, components in lines:
        key = _canonical(address.rstrip("/"), suite, mirrors), suite
        joined[key] = " ".join(dict.fromkeys(f"{joined.get(key, '')} {components}".split()))
    return [
        Archive(address=address, suite=suite, components=components, date="")
        for (address, suite), components in joined.items()
    ]


def _is_left_out(address: str) -> bool:
    """Tell whether it is a vendor's archive without a rule in the mirrors file."""
    return bool(_VENDORS.fullmatch(address)) and redirect(load().of("apt"), address) == address


def _stanzas(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the sources of deb822-style files."""
    for fields in debian_archive.stanzas(text):
        for address in fields.get("URIs", "").split():
            for suite in fields.get("Suites", "").split():
                yield address, suite, " ".join(fields.get("Components", "").split())


def _canonical(address: str, suite: str, mirrors: Mapping[str, str]) -> str:
    for name in (DEBIAN, SECURITY):
        if address == mirrors.get(f"{name}-mirror", "").rstrip("/"):
            return name
    if address.startswith("file:"):
        # A folder of the machine, under the name that it had in the build.
        return SECURITY if suite.endswith("-security") else DEBIAN
    return address


@dataclass(kw_only=True)
class Listing:
    """The packages of some names in all suites of archives, by name."""

    archives: list[Archive] = field(default_factory=list)
    debs: dict[str, list[Deb]] = field(default_factory=dict)

    @classmethod
    def of(cls, archives: Sequence[Archive], names: Iterable[str], processor: str) -> Listing:
        """Read the indexes of archives; raises `MachineError`."""
        listing, wanted, arch = cls(), set(names), debian_architecture(processor)
        for archive in archives:
            _refuse_flat(archive)
            release = debian_archive.release(_address(archive.address), archive.suite)
            listing.archives.append(replace(archive, date=_time(release.date)))
            for component in archive.components.split():
                for fields in debian_archive.packages(release, arch, component):
                    if fields.get("Package") in wanted:
                        deb = _deb(fields, archive)
                        listing.debs.setdefault(deb.name, []).append(deb)
        return listing

    def find(self, key: PackageKey) -> Deb | None:
        """Return the package of exactly this version."""
        name, version, arch = key
        return next(
            (
                deb
                for deb in self.debs.get(name, ())
                if (deb.version, deb.architecture) == (version, arch)
            ),
            None,
        )

    def newest(self, deb: Deb) -> Deb:
        """Return the newest package of this name and architecture, which apt takes."""
        from univers.versions import DebianVersion  # noqa: PLC0415  # 0.1 s

        same = (new for new in self.debs.get(deb.name, ()) if new.architecture == deb.architecture)
        newest = max((deb, *same), key=lambda package: DebianVersion(package.version))
        return replace(newest, only_build=deb.only_build)


def _refuse_flat(archive: Archive) -> None:
    """Raise `MachineError` for an archive without suites, which has its packages in one folder."""
    if archive.suite.endswith("/"):
        message = f"its suite is the folder '{archive.suite}', and no lock holds such an archive"
        fix = "Take it out of the base image's /etc/apt, and lock again."
        raise MachineError.of(message, where=archive.address, fix=fix)


def _deb(fields: Mapping[str, str], archive: Archive) -> Deb:
    return Deb(
        name=fields["Package"],
        version=fields["Version"],
        architecture=fields["Architecture"],
        archive=archive.address,
        suite=archive.suite,
        path=fields["Filename"],
        size=int(fields["Size"]),
        sha256=fields["SHA256"],
        priority=fields.get("Priority", ""),
    )


def of_base(key: PackageKey) -> Deb:
    """Return a package that nobody downloads: the base image has it."""
    name, version, arch = key
    return Deb(name=name, version=version, architecture=arch)


def _time(date: str) -> str:
    if not date:
        return ""
    return parsedate_to_datetime(date).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def refuse_missing(keys: Sequence[PackageKey], listing: Listing) -> None:
    """Raise `BuildError` with the packages that no archive has any more."""
    if keys:
        raise BuildError(*(_problem(key, listing) for key in keys))


def _problem(key: PackageKey, listing: Listing) -> Problem:
    name, version, arch = key
    there = ", ".join(deb.version for deb in listing.debs.get(name, ())) or "none"
    message = f"version {version} ({arch}) is in no archive any more; there: {there}"
    return Problem(where=f"Debian package {name}", what=message, fix=_FIX)


def _address(archive: str) -> str:
    """Return this machine's address of an archive; raises `MachineError`."""
    address = debian_archive.address(archive)
    if not address and archive == SECURITY:
        address = debian_archive.derive_security_address(debian_archive.address(DEBIAN))
    if not address and archive not in {DEBIAN, SECURITY}:
        address = archive
    if not address:
        fix = "Name a mirror in the mirrors file (docs/how-to/mirrors.md)."
        raise MachineError.of(f"no mirror of '{archive}' is known here", fix=fix)
    return address.rstrip("/")


def address(deb: Deb) -> str:
    """Return this machine's address of a package."""
    return f"{_address(deb.archive)}/{deb.path}"
