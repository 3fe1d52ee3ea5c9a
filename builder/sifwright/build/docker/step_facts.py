"""What is known of the images that steps made, beside what the engine keeps of them.

Apt's sources that a layer leaves for later ones may have a mirror's password in them: they are kept
in the user's own cache, by the image's id, and never in the image.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from sifwright.build.request.first_use import SourceDigest
from sifwright.build.steps import build_folder
from sifwright.system import cache_folder, files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["StepRecord", "read", "write"]

_FORMAT = "docker-1"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """`kept` is what the step left for later ones, `mirrors` are Debian's that are named in it."""

    kept: Mapping[str, str]
    used: Sequence[SourceDigest]
    mirrors: Mapping[str, str]

    def fits(self, record: Mapping[str, str]) -> bool:
        """Whether its sources were what they were when they were first used here."""
        return all(record.get(one.key, one.digest) == one.digest for one in self.used)

    def kept_here(self, mirrors: Mapping[str, str]) -> dict[str, str]:
        """Return the files with this machine's mirrors in place of those they had."""
        return build_folder.moved(self.kept, self.mirrors, mirrors)


def _folder() -> Path:
    return cache_folder.root().with_name(_FORMAT)


def _file(image: str) -> Path:
    return _folder() / f"{image.removeprefix('sha256:')}.json"


def read(image: str) -> StepRecord | None:
    """What is known of an image; None where that is nothing."""
    try:
        found = json.loads(_file(image).read_text())
        used = [SourceDigest(**one) for one in found["used"]]
        return StepRecord(kept=dict(found["kept"]), used=used, mirrors=dict(found["mirrors"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(image: str, facts: StepRecord) -> None:
    _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    data = json.dumps(asdict(facts)).encode()
    files.write(_file(image), data, mode=0o600)
