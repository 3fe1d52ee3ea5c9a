"""The wheels that a lock file names (pylock.toml, PEP 751), and which of them pip would take."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from packaging.tags import Tag

__all__ = ["GLIBC", "LockedWheels", "Wheel", "read"]

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
    """Of each package that is locked the wheel that pip takes, if it can be checked.

    Those in folders of this machine pip reads where they are. Raises `ValueError` for a file that
    is no TOML.
    """
    ranks = _ranks(python, processor)
    packages = tomllib.loads(lock).get("packages", [])
    best = [(package["name"], _best(package.get("wheels", []), ranks)) for package in packages]
    found = tuple(_wheel(name, one) for name, one in best if _is_remote(one))
    local = sum(_is_local(one) for _, one in best)
    return LockedWheels(wheels=found, whole=len(found) + local == len(best))


def _wheel(package: str, entry: Mapping[str, Any]) -> Wheel:
    sha256 = entry["hashes"]["sha256"]
    name = canonicalize_name(package)
    return Wheel(package=name, name=_name(entry), url=entry["url"], sha256=sha256)


def _best(entries: Sequence[Mapping[str, Any]], ranks: Mapping[Tag, int]) -> Mapping[str, Any]:
    """The wheel that fits best; of several sources the last one, as pip has it. Empty if none."""
    fitting = [one for one in entries if _rank(one, ranks) < len(ranks)]
    return min(reversed(fitting), key=lambda one: _rank(one, ranks), default={})


def _name(entry: Mapping[str, Any]) -> str:
    """Its file name, which PEP 751 has left out where the address ends in it."""
    path = str(entry.get("name") or unquote(urlsplit(entry.get("url", "")).path))
    return path.rpartition("/")[2]


def _is_remote(entry: Mapping[str, Any]) -> bool:
    """Whether it is on a server, and can be compared with what it should be."""
    url, digest = entry.get("url", ""), entry.get("hashes", {}).get("sha256", "")
    return url.startswith(("http://", "https://")) and bool(_DIGEST.fullmatch(digest))


def _is_local(entry: Mapping[str, Any]) -> bool:
    return "path" in entry or entry.get("url", "").startswith("file:")


def _rank(entry: Mapping[str, Any], ranks: Mapping[Tag, int]) -> int:
    """How well it fits, 0 being best; as many as there are ranks if it does not."""
    try:
        tags = parse_wheel_filename(_name(entry))[3]
    except InvalidWheelFilename:
        return len(ranks)
    return min(ranks.get(tag, len(ranks)) for tag in tags)


def _ranks(python: str, processor: str) -> dict[Tag, int]:
    major, minor = (int(number) for number in python.split(".")[:2])
    interpreter = f"cp{major}{minor}"
    platforms = [*_platforms(processor), f"linux_{processor}"]
    tags = chain(
        cpython_tags((major, minor), abis=[interpreter], platforms=platforms),
        compatible_tags((major, minor), interpreter=interpreter, platforms=platforms),
    )
    return {tag: rank for rank, tag in enumerate(tags)}


def _platforms(processor: str) -> Iterator[str]:
    """What runs on such an image, the most specific first."""
    for minor in range(GLIBC, _FIRST_GLIBC - 1, -1):
        yield f"manylinux_2_{minor}_{processor}"
    yield f"manylinux2014_{processor}"
    if processor == "x86_64":
        for minor in range(_FIRST_GLIBC - 1, 4, -1):
            yield f"manylinux_2_{minor}_{processor}"
            # What PEP 513 and 571 call these.
            if minor in {12, 5}:
                yield f"{ {12: 'manylinux2010', 5: 'manylinux1'}[minor] }_{processor}"
