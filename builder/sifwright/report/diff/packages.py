"""Compare the packages of two images."""

from collections.abc import Iterable
from dataclasses import dataclass

from sifwright.images.contents.packages import Package
from sifwright.system.terminal import escape_name


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageChange:
    """A package with other versions; None means that a side lacks the package.

    An image may have several versions of a Python distribution: programs bring their own.
    """

    kind: str
    name: str
    old: str | None
    new: str | None

    @property
    def state(self) -> str:
        if self.old is None:
            return "added"
        return "removed" if self.new is None else "changed"

    def document(self) -> dict[str, object]:
        facts = {"kind": self.kind, "name": escape_name(self.name), "state": self.state}
        return {**facts, "old": _escape_version(self.old), "new": _escape_version(self.new)}


def compare(old: Iterable[Package], new: Iterable[Package]) -> list[PackageChange]:
    """Return added, removed and changed packages, in the order of kinds and names."""
    before, after = _versions(old), _versions(new)
    return [
        PackageChange(kind=key[0], name=key[1], old=before.get(key), new=after.get(key))
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    ]


def _versions(packages: Iterable[Package]) -> dict[tuple[str, str], str]:
    versions: dict[tuple[str, str], list[str]] = {}
    for package in packages:
        versions.setdefault((package.kind, package.name), []).append(package.version)
    return {key: ", ".join(sorted(some)) for key, some in versions.items()}


def _escape_version(version: str | None) -> str | None:
    return None if version is None else escape_name(version)
