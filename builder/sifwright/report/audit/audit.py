"""Compare what is in an image with security archives, vulnerabilities, indexes and pins."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from packaging.utils import canonicalize_name

from sifwright.catalog import mirrors
from sifwright.catalog.model import Catalog
from sifwright.errors import MachineError
from sifwright.host.network import debian_archive, package_index, pins, registry, rpm_repository
from sifwright.images.contents.inventory import Inventory
from sifwright.images.contents.packages import Kind, Package
from sifwright.plan import plan_file
from sifwright.plan.model import StepSource
from sifwright.report.audit import osv, rpm_sources
from sifwright.report.audit.data import PYPI, AuditData
from sifwright.report.audit.findings import Audit, Finding

_DEBIANS = {
    "debian": ("main", "contrib", "non-free"),
    "ubuntu": ("main", "restricted", "universe", "multiverse"),
}
_RELEASE = re.compile(r"^\s*deb\s+(?:\[[^]]*\]\s*)?(\S+)\s+(\S+)|^URIs:\s*(\S+)", re.MULTILINE)

_Comparison = Callable[[Sequence[Package]], Iterator[Finding]]


@dataclass(kw_only=True)
class Auditor:
    """A search for findings. `catalog`, if known, has the sources of the image's layers."""

    contents: Inventory
    data: AuditData
    record: Mapping[str, Any] = field(default_factory=dict)
    catalog: Catalog | None = None
    compared: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    def audit(self, image: str) -> Audit:
        """Return all findings; raises `MachineError` for a source that does not answer."""
        if not (self.contents.of("debian") or self.contents.of("rpm")):
            name = self.contents.system.get("ID") or "an unknown system"
            self.unchecked.append(f"packages of {name}: no database of dpkg or rpm can be read")
        findings = [*self._packages(), *self._base(), *self._pins()]
        return Audit(
            image=image,
            findings=tuple(sorted(findings, key=lambda item: (item.rule, item.package))),
            compared=tuple(self.compared),
            unchecked=tuple(self.unchecked),
        )

    def _packages(self) -> Iterator[Finding]:
        """Yield the findings about each kind of packages that is installed."""
        kinds: dict[Kind, tuple[_Comparison, ...]] = {
            "debian": (self._debian,),
            "rpm": (self._rpm,),
            "python": (self._osv, self._yanked),
        }
        for kind, comparisons in kinds.items():
            if installed := self.contents.of(kind):
                yield from chain.from_iterable(compare(installed) for compare in comparisons)

    def _debian(self, installed: Sequence[Package]) -> Iterator[Finding]:
        system = self.contents.system
        distribution, code = system.get("ID", ""), system.get("VERSION_CODENAME", "")
        if distribution not in _DEBIANS or not code:
            self.unchecked.append(
                f"{len(installed)} packages of {distribution or 'no known system'}"
            )
            return
        suite, address = f"{code}-security", self._archive(distribution, code)
        if not address:
            fix = f"no mirror of {distribution}-security is known: name one, or give --data"
            self.unchecked.append(f"{len(installed)} {distribution} packages: {fix}")
            return
        self.data.places[address] = f"{distribution}-security"
        release = debian_archive.release(address, suite)
        newest = _newest(_stanzas(release, installed, _DEBIANS[distribution]))
        self._note(len(installed), distribution, f"{suite} of {release.date or 'the data'}")
        yield from _behind(installed, newest, suite)

    def _archive(self, distribution: str, code: str) -> str:
        """Return the address of the security archive: the data's, the machine's or the image's."""
        if self.data.folder:
            return self.data.below(f"{distribution}-security")
        if distribution == "debian":
            archive = debian_archive.address("debian")
            security = debian_archive.address("debian-security")
            return security or debian_archive.derive_security_address(archive)
        rules = mirrors.load().of("apt")
        for text in self.contents.sources.values():
            for plain, suite, deb822 in _RELEASE.findall(text):
                if deb822 or suite == f"{code}-security":
                    return mirrors.redirect(rules, (deb822 or plain).rstrip("/"))
        return ""

    def _rpm(self, installed: Sequence[Package]) -> Iterator[Finding]:
        addresses = self.data.repositories() if self.data.folder else list(self._repositories())
        if not addresses:
            self.unchecked.append(f"{len(installed)} RPM packages: no repository with an address")
        for number, address in enumerate(addresses):
            self.data.places[address] = f"rpm/{number}"
            try:
                listed = rpm_repository.advisories(address)
            except rpm_repository.NoUpdatesError:
                text = f"RPM packages of {self.data.shorten_address(address)}: it lists no updates"
                self.unchecked.append(text)
                continue
            self._note(len(installed), "RPM", self.data.shorten_address(address))
            yield from _advised(installed, listed, self.data.shorten_address(address))

    def _repositories(self) -> Iterator[str]:
        """Yield the addresses of the image's repositories, by the mirrors file."""
        for name, address in rpm_sources.repositories(self.contents):
            if address:
                yield mirrors.load().redirect(address, *mirrors.DOWNLOADS)
            else:
                self.unchecked.append(f"RPM packages of repository {name}: it has no plain address")

    def _osv(self, installed: Sequence[Package]) -> Iterator[Finding]:
        if not self.data.osv:
            self.unchecked.append(
                f"{len(installed)} Python packages: no OSV dump; name one by --osv"
            )
        for number, dump in enumerate(self.data.osv):
            self.data.places[dump] = f"osv/{number}.zip"
            self._note(len(installed), "Python", self.data.shorten_address(dump))
            yield from osv.findings(installed, dump)

    def _yanked(self, installed: Sequence[Package]) -> Iterator[Finding]:
        index = self.data.below(PYPI) if self.data.folder else package_index.address()
        if not index:
            self.unchecked.append("withdrawn versions: there is no index")
            return
        self.data.places[index] = PYPI
        withdrawn = package_index.yanked([package.name for package in installed], index)
        self._note(len(installed), "Python", self.data.shorten_address(index))
        for package in installed:
            versions = withdrawn[canonicalize_name(package.name)]
            version = osv.public(package.version)
            if version in versions:
                reason = versions[version] or "no reason is given"
                yield Finding(
                    rule="yanked",
                    package=package.name,
                    version=package.version,
                    message=f"withdrawn from its index: {reason}",
                )

    def _base(self) -> Iterator[Finding]:
        for source in self.record.get("sources", ()):
            if source.get("source") != "From" or "@" in source["ref"]:
                continue
            if self.data.folder:
                self.unchecked.append(f"base image {source['ref']}: --data asks no registry")
                continue
            name = mirrors.redirect(mirrors.load().of("oci"), source["ref"])
            try:
                now = registry.digest(registry.parse(name))
            except registry.RegistryError as error:
                raise MachineError.of(str(error), where=name, fix=error.fix) from None
            self.compared.append(f"base image {source['ref']}")
            if now != source["digest"]:
                yield Finding(
                    rule="stale-base",
                    package=source["ref"],
                    version=source["digest"],
                    fixed=now,
                    message=f"{source['ref']} is {now} now",
                )

    def _pins(self) -> Iterator[Finding]:
        try:
            plan = plan_file.parse_plan(json.dumps(self.record or self.contents.plan))
        except ValueError:
            return
        used = [(step.layer, item) for step in plan.steps for item in step.sources if item.digest]
        if used and (self.data.folder or self.catalog is None):
            self.unchecked.append(f"{len(used)} pinned sources: name the SITE, and have a network")
            return
        for layer, source in used:
            assert self.catalog is not None  # noqa: S101  # for the type checker
            for entry in _entries(self.catalog, layer, source):
                yield from self._pin(entry, source.digest)

    def _pin(self, entry: pins.PinStatus, digest: str) -> Iterator[Finding]:
        name = f"{entry.layer} {entry.source}"
        if entry.state == "no answer":
            self.unchecked.append(f"{name} {entry.version}: {entry.reason}")
        elif entry.state in {"moved", "gone", "changed"} or entry.pin != digest:
            yield Finding(
                rule="stale-pin",
                package=name,
                version=entry.version,
                fixed=entry.found or entry.pin,
                message=f"{entry.url} has {entry.found or entry.pin}, the image {digest}",
            )

    def _note(self, count: int, kind: str, source: str) -> None:
        self.compared.append(f"{count} {kind} packages with {source}")


def _entries(catalog: Catalog, layer: str, source: StepSource) -> Sequence[pins.PinStatus]:
    known = catalog.layers.get(layer)
    if known is None or all(source.version not in item.versions for item in known.sources):
        return ()
    return pins.check(catalog, (layer, source.name, source.version))


def _stanzas(
    release: debian_archive.Release, installed: Sequence[Package], components: Iterable[str]
) -> Iterator[dict[str, str]]:
    names = {package.name for package in installed}
    for architecture in sorted({package.architecture for package in installed} - {"all"}):
        for component in components:
            if component == "main" or debian_archive.has(release, architecture, component):
                for stanza in debian_archive.packages(release, architecture, component):
                    if stanza.get("Package") in names:
                        yield stanza


def _newest(stanzas: Iterable[Mapping[str, str]]) -> dict[str, str]:
    from univers.versions import DebianVersion  # noqa: PLC0415  # 0.1 s

    newest: dict[str, str] = {}
    for stanza in stanzas:
        name, version = stanza["Package"], stanza["Version"]
        newest[name] = max(newest.get(name, version), version, key=DebianVersion)
    return newest


def _behind(
    installed: Iterable[Package], newest: Mapping[str, str], suite: str
) -> Iterator[Finding]:
    from univers.versions import DebianVersion  # noqa: PLC0415  # 0.1 s

    for package in installed:
        version = newest.get(package.name, "")
        if version and DebianVersion(package.version) < DebianVersion(version):
            yield _update(package, version, "", suite)


def _advised(
    installed: Iterable[Package], listed: Iterable[rpm_repository.Advisory], source: str
) -> Iterator[Finding]:
    """Yield the newest of the updates that a repository lists for each package."""
    from univers.versions import RpmVersion  # noqa: PLC0415  # 0.1 s

    updates: dict[str, list[rpm_repository.Advisory]] = defaultdict(list)
    for item in listed:
        updates[item.package].append(item)
    for package in installed:
        version = RpmVersion(package.version)
        newer = [item for item in updates[package.name] if RpmVersion(item.version) > version]
        if newer:
            last = max(newer, key=lambda item: RpmVersion(item.version))
            yield _update(package, last.version, last.identity, source)


def _update(package: Package, version: str, identity: str, source: str) -> Finding:
    return Finding(
        rule="security-update",
        package=package.name,
        version=package.version,
        fixed=version,
        identity=identity,
        message=f"{source} has {version}",
    )
