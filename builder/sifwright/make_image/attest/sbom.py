"""The bill of materials of an image, as CycloneDX 1.6: the same contents give the same bytes."""

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.utils import canonicalize_name

from sifwright.images.contents.inventory import Inventory
from sifwright.images.contents.packages import Package
from sifwright.make_image.attest.properties import PLACE, RECORD
from sifwright.make_image.attest.provenance import sources
from sifwright.plan.model import Plan
from sifwright.plan.source_digest import SourceDigest

_TYPES = {"debian": "deb", "rpm": "rpm", "python": "pypi"}
_SHA256_DIGITS = 64
# SPDX calls the same licences by these names, which Debian's copyright files have.
_LICENCES = LicenseFactory()
# Nothing of a licence: only a text has it.
_NO_LICENCES = {"", "not stated", "see copyright"}


def sbom(plan: Plan, contents: Inventory, used: Iterable[SourceDigest], epoch: int) -> bytes:
    """Return the document; `used` are the sources of all steps as the build found them."""
    bom = Bom()
    root = Component(
        type=ComponentType.CONTAINER,
        name=plan.image.name,
        version=plan.id[:12],
        description=plan.image.description,
        bom_ref=f"image:{plan.id}",
        properties=[Property(name="sifwright:site", value=plan.site.name)],
    )
    parts = [*_system(contents), *_packages(contents), *_sources(plan, used)]
    bom.components.update(parts)
    bom.metadata.component = root
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, UTC)
    bom.register_dependency(root, parts)
    # The library would take a random one.
    bom.serial_number = uuid5(NAMESPACE_URL, f"{plan.id} {sorted(str(p.bom_ref) for p in parts)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = JsonV1Dot6(bom).output_as_string()
    return (json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n").encode()


def _system(contents: Inventory) -> Iterator[Component]:
    if name := contents.system.get("ID", ""):
        yield Component(
            type=ComponentType.OPERATING_SYSTEM,
            name=name,
            version=contents.system.get("VERSION_ID"),
            description=contents.system.get("PRETTY_NAME"),
            bom_ref="system",
        )


def _packages(contents: Inventory) -> Iterator[Component]:
    for package in contents.packages:
        purl = _purl(package, contents.system)
        places = [(PLACE, package.folder)] if package.folder else []
        if record := contents.records.get(package.folder):
            places.append((RECORD, record))
        texts = [("sifwright:licence-text", text) for text in package.texts]
        licences = {package.licence} - _NO_LICENCES
        yield Component(
            type=ComponentType.LIBRARY,
            name=package.name,
            version=package.version,
            purl=purl,
            bom_ref=f"{purl}#{package.folder}",
            licenses=[_LICENCES.make_from_string(name) for name in licences],
            properties=[Property(name=name, value=value) for name, value in places + texts],
        )


def _purl(package: Package, system: Mapping[str, str]) -> PackageURL:
    if package.kind == "python":
        return PackageURL("pypi", None, canonicalize_name(package.name), package.version)
    distribution = system.get("ID", "")
    distro = "-".join(filter(None, (distribution, system.get("VERSION_ID"))))
    qualifiers = {"arch": package.architecture, "distro": distro}
    version = package.version
    if package.kind == "rpm" and ":" in version:
        qualifiers["epoch"], _, version = version.partition(":")
    kept = {name: value for name, value in qualifiers.items() if value}
    return PackageURL(_TYPES[package.kind], distribution, package.name, version, kept)


def _sources(plan: Plan, used: Iterable[SourceDigest]) -> Iterator[Component]:
    """Yield what layers fetched and compiled, with the commit or sha256 of it."""
    for layer, source, digest in sources(plan, used):
        is_sha256 = len(digest) == _SHA256_DIGITS
        key = "download_url" if is_sha256 else "vcs_url"
        address = source.url if is_sha256 or not digest else f"git+{source.url}@{digest}"
        purl = PackageURL("generic", None, source.name, source.version, {key: address})
        yield Component(
            type=ComponentType.LIBRARY,
            name=source.name,
            version=source.version,
            purl=purl,
            bom_ref=f"{purl}#{layer}",
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)] if is_sha256 else [],
            properties=[Property(name="sifwright:layer", value=layer)],
        )
