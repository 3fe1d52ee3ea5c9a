"""What is known of the images that steps made, beside what the engine keeps of them.

Apt's sources that a layer leaves for later ones may have a mirror's password in them: they are kept
in the user's own cache, by the image's id, and never in the image.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from sifwright import files
from sifwright.firstuse import Used
from sifwright.store import location

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["Facts", "read", "write"]

_FORMAT = "docker-1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """`kept` is what the step left for later ones, `mirror` the Debian mirror named in it."""

    kept: Mapping[str, str]
    used: Sequence[Used]
    mirror: str

    def fits(self, record: Mapping[str, str]) -> bool:
        """Whether its sources were what they were when they were first used here."""
        return all(record.get(one.key, one.digest) == one.digest for one in self.used)

    def kept_here(self, mirror: str) -> dict[str, str]:
        """With this machine's mirror in place of the one they had."""
        if not (self.mirror and mirror):
            return dict(self.kept)
        return {name: text.replace(self.mirror, mirror) for name, text in self.kept.items()}


def _folder() -> Path:
    return location.root().with_name(_FORMAT)


def _file(image: str) -> Path:
    return _folder() / f"{image.removeprefix('sha256:')}.json"


def read(image: str) -> Facts | None:
    """What is known of an image; None where that is nothing."""
    try:
        found = json.loads(_file(image).read_text())
        used = [Used(**one) for one in found["used"]]
        return Facts(kept=dict(found["kept"]), used=used, mirror=str(found["mirror"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(image: str, facts: Facts) -> None:
    _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    data = json.dumps(asdict(facts)).encode()
    files.write(_file(image), data, mode=0o600)
