"""Contents of a lock, as the audit reads them of an image: packages, archives and the base."""

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sifwright.errors import UsageError
from sifwright.images.contents.inventory import Inventory
from sifwright.images.contents.packages import Package
from sifwright.make_image.lock import bundle
from sifwright.make_image.lock_format import lock_file
from sifwright.make_image.lock_format.lock_file import Lock

_SECURITY = "-security"


def read_lock(name: str) -> Lock | None:
    """Return the lock in a file or bundle; None for what is neither.

    Raises `BuildError` for a lock that is none, `UsageError` for another tar file.
    """
    path = Path(name)
    if path.suffix == ".toml":
        return lock_file.read(path)
    if not path.is_file() or not tarfile.is_tarfile(path):
        return None
    with tarfile.open(path) as archive:
        first = archive.next()
    if first and first.name == bundle.LOCK:
        return bundle.lock_of(path)
    fix = f"Name a bundle, or an image as docker-archive:{name} or oci-archive:{name}."
    raise UsageError.of("is a tar file without a lock", where=name, fix=fix)


def inventory_of(lock: Lock) -> Inventory:
    """Return the packages that an image from this lock has."""
    texts = (f"deb {item.address} {item.suite} {item.components}" for item in lock.archives)
    return Inventory(
        system=dict(_system(lock)),
        packages=tuple(_packages(lock)),
        sources={"etc/apt/sources.list": "\n".join(texts)},
        plan={},
    )


def record_of(lock: Lock) -> dict[str, Any]:
    """Return the entry of a record about the base image, if it is one of a registry."""
    base = lock.base
    if base["bootstrap"] != "docker":
        return {}
    source = {"source": "From", "ref": base["reference"], "digest": base["digest"]}
    return {"sources": [source]}


def _system(lock: Lock) -> Iterator[tuple[str, str]]:
    """Yield the values of os-release that the archives of the packages tell."""
    archives = sorted(lock.archives, key=lambda item: not item.suite.endswith(_SECURITY))
    for archive in archives[:1]:
        yield "ID", "ubuntu" if "ubuntu" in archive.address else "debian"
        yield "VERSION_CODENAME", archive.suite.removesuffix(_SECURITY)


def _packages(lock: Lock) -> Iterator[Package]:
    for deb in (deb for deb in lock.debs if not deb.only_build):
        yield Package(
            kind="debian", name=deb.name, version=deb.version, architecture=deb.architecture
        )
    for rpm in lock.rpms:
        yield Package(kind="rpm", name=rpm.name, version=rpm.version, architecture=rpm.architecture)
    python = [(wheel.name, wheel.version) for wheel in lock.wheels]
    python += [(package.name, package.version) for package in lock.unlocked]
    yield from (Package(kind="python", name=name, version=version) for name, version in python)
