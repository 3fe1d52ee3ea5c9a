"""Check that a SIF is the one that a build published, by the record beside it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sifwright.images.sif.fingerprint import RECORD, is_intact, sif_fingerprint


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One thing that was checked of an image, and what came of it, in lines for a person."""

    name: str
    passed: bool
    lines: tuple[str, ...]


def check_published(sif: Path, record: dict[str, Any]) -> Check:
    """Read every byte of a SIF, and compare it with the record; raise `SifError`."""
    now, before = sif_fingerprint(sif), str(record["sif_fingerprint"])
    if not is_intact(record):
        return Check(name="published", passed=False, lines=(f"{RECORD} is not as it was written",))
    if now == before:
        lines = [f"every byte is what was published on {record.get('built', 'an unknown day')}"]
    else:
        lines = ["it is not what was published", f"recorded: {before}", f"now:      {now}"]
    return Check(name="published", passed=now == before, lines=tuple(lines))
