"""The packages of an inventory that a lock names, and their comparison with a lock."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from packaging.utils import canonicalize_name, canonicalize_version

from sifwright.errors import BuildError
from sifwright.images.contents.image_tree import BadImage
from sifwright.images.contents.inventory import Inventory, inventory
from sifwright.images.contents.packages import Package
from sifwright.images.sif.copy_data import Range
from sifwright.images.sources.sif_image import tree_of
from sifwright.make_image.lock_format.lock_file import Deb, Lock, Rpm

# Debian's packages of Python bring these.
_OF_DEBIAN = re.compile(r"/usr/lib/python3[^/]*/dist-packages/.*", re.DOTALL)
_SHOWN = 20
PackageKey = tuple[str, str, str]
PythonKey = tuple[str, str]


def of_squashfs(parts: Sequence[Range]) -> Inventory:
    """Return what squashfs files come to, the lowest first; raise `BuildError`."""
    try:
        return inventory(tree_of(parts, only_packages=True))
    except BadImage as error:
        raise BuildError.of(str(error), where=str(parts[-1].path), fix=error.fix) from None


def system_packages(inventory: Inventory, kind: Literal["debian", "rpm"]) -> frozenset[PackageKey]:
    """Return name, version and architecture of the packages of this kind."""
    return _keys(inventory.of(kind))


def _keys(packages: Iterable[Package | Deb | Rpm]) -> frozenset[PackageKey]:
    return frozenset((item.name, item.version, item.architecture) for item in packages)


def python(inventory: Inventory) -> dict[PythonKey, frozenset[str]]:
    """Return the tags of the wheels that Python packages were installed from."""
    return {
        (
            canonicalize_name(item.name),
            canonicalize_version(item.version, strip_trailing_zero=False),
        ): item.tags
        for item in inventory.of("python")
        if not _OF_DEBIAN.fullmatch(item.folder)
    }


def refuse_difference(lock: Lock, inventory: Inventory, where: str) -> None:
    """Raise `BuildError` with the packages that are not those of the lock."""
    debs = [deb for deb in lock.debs if not deb.only_build]
    wheels = {(wheel.name, wheel.version) for wheel in lock.wheels}
    wheels |= {(item.name, item.version) for item in lock.unlocked}
    lines = [
        *_different("debian", _keys(debs), system_packages(inventory, "debian")),
        *_different("rpm", _keys(lock.rpms), system_packages(inventory, "rpm")),
        *_different("python", wheels, python(inventory).keys()),
    ]
    if not lines:
        return
    more = [f"… and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    shown = "\n    ".join([*lines[:_SHOWN], *more])
    fix = "If that is meant, write the lock again with 'sifwright lock'; nothing was published."
    raise BuildError.of(f"the image is not that of the lock\n    {shown}", where=where, fix=fix)


def _different(
    kind: str, locked: Collection[tuple[str, ...]], installed: Collection[tuple[str, ...]]
) -> list[str]:
    lost, new = set(locked) - set(installed), set(installed) - set(locked)
    lines = [f"{kind} {' '.join(item)}: in the lock, not in the image" for item in sorted(lost)]
    return lines + [
        f"{kind} {' '.join(item)}: in the image, not in the lock" for item in sorted(new)
    ]
