"""The fingerprint of a SIF, one digest of all its bytes, and the record beside it that has that."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sifwright.errors import SifwrightError, UsageError
from sifwright.images.sif import sif_file
from sifwright.images.sif.copy_data import Range
from sifwright.system import digest_cache, small_file

RECORD = "record.json"
_DIGEST = "record_sha256"
# Offset and size in bytes, and sha256.
Part = tuple[int, int, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Digests:
    """The sha256 of each partition, by its offset, and of all other bytes together."""

    parts: Sequence[Part]
    rest: str

    @property
    def fingerprint(self) -> str:
        """Return the `sif_fingerprint`."""
        digests = (self.rest, *(sha256 for _, _, sha256 in self.parts))
        return hashlib.sha256(" ".join(digests).encode()).hexdigest()

    @property
    def document(self) -> dict[str, object]:
        """Return the entries of a record."""
        return {
            "sif_fingerprint": self.fingerprint,
            "sif_parts": [list(part) for part in self.parts],
        }


def known_fingerprint(path: Path) -> str:
    """Return the `sif_fingerprint`, remembered for a day while nothing touches the file."""
    return digest_cache.remembered(path, digest_cache.SIF, sif_fingerprint)


def sif_fingerprint(path: Path) -> str:
    """Return a digest of all bytes of a SIF; raise `SifError`.

    The fingerprint is the sha256 of the sha256 of each partition and of the rest of the file. So an
    image made of partitions with known digests need not be read again.
    """
    return measure(path).fingerprint


def measure(path: Path, known: Iterable[Part] = ()) -> Digests:
    """Return the digests of a SIF; partitions with known ones are not read. Raise `SifError`."""
    digests = {(offset, size): sha256 for offset, size, sha256 in known}
    parts = tuple(
        (
            part.offset,
            part.size,
            digests.get((part.offset, part.size)) or sif_file.digest(path, part),
        )
        for part in sorted(sif_file.read(path).partitions, key=lambda part: part.offset)
    )
    return Digests(parts=parts, rest=sif_file.sha256_of(*_between(path, parts)))


def _between(path: Path, parts: Sequence[Part]) -> Iterator[Range]:
    """Yield the ranges that belong to no partition."""
    end, whole = 0, path.stat().st_size
    for offset, size, _ in (*parts, (whole, 0, "")):
        yield Range(path=path, offset=end, size=max(offset - end, 0))
        end = max(end, offset + size)


def record_text(record: Mapping[str, Any]) -> str:
    """Return the text of a record, with the sha256 of its entries as the last one."""
    return json.dumps({**_entries(record), _DIGEST: _digest(record)}, indent=1) + "\n"


def is_intact(record: Mapping[str, Any]) -> bool:
    """Return whether the entries of a record are those that were written."""
    return bool(record.get(_DIGEST) == _digest(record))


def _digest(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(_entries(record)).encode()).hexdigest()


def _entries(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in record if name != _DIGEST}


def known_record(image: Path) -> tuple[Path, dict[str, Any]]:
    """Return the record beside an image, and what it says; {} if it is another image's."""
    file = image.resolve().with_name(RECORD)
    try:
        return file, read_record(image)
    except UsageError:
        return file, {}


def read_record(sif: Path) -> dict[str, Any]:
    """Return the record beside a SIF or what its link leads to; raise `UsageError`."""
    if not sif.is_file():
        raise UsageError.of("there is no such file", where=str(sif), fix="Name a SIF.")
    target = sif.resolve()
    path = target.with_name(RECORD)
    fix = f"Copy {RECORD} of the folder that the image comes from to {path}."
    try:
        record = small_file.read_json(path)
        name, _ = str(record["sif"]), str(record["sif_fingerprint"])
    except OSError as error:
        message = f"no record can be read beside it: {error.strerror}"
        raise UsageError.of(message, where=str(sif), fix=fix) from None
    except (ValueError, LookupError, TypeError):
        raise UsageError.of("is no record of a SIF", where=str(path), fix=fix) from None
    if name != target.name:
        fix = "Copy the record of this image, or name the other one."
        raise UsageError.of(f"is the record of {name}", where=str(path), fix=fix)
    return dict(record)


def expected_digests(image: Path) -> str:
    """Return what the program `check-image` compares an image with; '' for one that is not here."""
    _, record = known_record(image)
    if record.get("sif_parts"):
        return _line(record["sif_fingerprint"], record["sif_parts"])
    try:
        measured = measure(image)
    except (OSError, SifwrightError):
        return ""
    return _line(measured.fingerprint, measured.parts)


def _line(digest: str, parts: Sequence[Part]) -> str:
    return " ".join([digest, *(f"{offset}+{size}" for offset, size, _ in parts)])
