"""The wheels that a lock file names (pylock.toml, PEP 751), and which of them pip would take."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.pylock import Pylock
from packaging.tags import compatible_tags, cpython_tags, create_compatible_tags_selector
from packaging.utils import parse_wheel_filename

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from packaging.pylock import PackageWheel
    from packaging.tags import Tag

    Tagged = tuple[PackageWheel, frozenset[Tag]]
    Select = Callable[[Iterable[Tagged]], Iterator[PackageWheel]]

# The oldest of the images' C libraries, as in manylinux_2_28: Red Hat 8's. What is built for a
# later one only, the step's pip downloads itself.
GLIBC = 28
# The first that has a name of this form (PEP 600) beside its old one, manylinux2014.
_FIRST_GLIBC = 17
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """A wheel on a server, under its package's normalized name."""

    package: str
    name: str
    url: str
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedWheels:
    """The wheels that can be fetched. `whole`: with those in folders of this machine, all."""

    wheels: tuple[Wheel, ...]
    whole: bool


def read(lock: str, python: str, processor: str) -> LockedWheels:
    """Return the wheel that pip takes of each locked package, if it can be checked.

    pip reads wheels in folders of this machine itself. Raises `ValueError` for a file that is no
    TOML, `PylockValidationError` for one that is no lock of wheels.
    """
    select = create_compatible_tags_selector(_tags(python, processor))
    packages = Pylock.from_dict(tomllib.loads(lock)).packages
    best = [(item.name, _best(item.wheels or (), select)) for item in packages]
    wheels = [_wheel(name, wheel) for name, wheel in best if wheel and _is_remote(wheel)]
    local = sum(wheel is not None and _is_local(wheel) for _, wheel in best)
    return LockedWheels(wheels=tuple(wheels), whole=len(wheels) + local == len(best))


def _best(wheels: Sequence[PackageWheel], select: Select) -> PackageWheel | None:
    """Return the wheel that fits best; if several sources have it, pip takes the last."""
    tagged = [(wheel, parse_wheel_filename(wheel.filename)[3]) for wheel in reversed(wheels)]
    return next(select(tagged), None)


def _wheel(package: str, wheel: PackageWheel) -> Wheel:
    sha256 = wheel.hashes["sha256"]
    return Wheel(package=package, name=wheel.filename, url=wheel.url or "", sha256=sha256)


def _is_remote(wheel: PackageWheel) -> bool:
    """Return whether it is on a server, and can be compared with its sha256."""
    is_on_server = (wheel.url or "").startswith(("http://", "https://"))
    return is_on_server and bool(_DIGEST.fullmatch(wheel.hashes.get("sha256", "")))


def _is_local(wheel: PackageWheel) -> bool:
    return bool(wheel.path) or (wheel.url or "").startswith("file:")


def _tags(python: str, processor: str) -> Iterator[Tag]:
    """Yield the tags of wheels that run on the image, the best first."""
    major, minor = (int(number) for number in python.split(".")[:2])
    interpreter = f"cp{major}{minor}"
    platforms = [*_platforms(processor), f"linux_{processor}"]
    yield from cpython_tags((major, minor), abis=[interpreter], platforms=platforms)
    yield from compatible_tags((major, minor), interpreter=interpreter, platforms=platforms)


def _platforms(processor: str) -> Iterator[str]:
    """Yield the platforms of wheels that run on such an image, the most specific first."""
    for minor in range(GLIBC, _FIRST_GLIBC - 1, -1):
        yield f"manylinux_2_{minor}_{processor}"
    yield f"manylinux2014_{processor}"
    if processor == "x86_64":
        for minor in range(_FIRST_GLIBC - 1, 4, -1):
            yield f"manylinux_2_{minor}_{processor}"
            # What PEP 513 and 571 call these.
            if minor in {12, 5}:
                yield f"{ {12: 'manylinux2010', 5: 'manylinux1'}[minor] }_{processor}"
