"""Which results in the step cache are those of a plan's steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.build.layers.pack import BYTES_PER_FILE, SQUASHFS
from sifwright.build.request.first_use import SourceDigest
from sifwright.build.steps import step_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sifwright.build.cache.store import CacheEntry, Store
    from sifwright.plan.model import Plan, Step

__all__ = ["CachedSteps", "unpacked", "used"]


def used(entry: CacheEntry) -> list[SourceDigest]:
    """The sources that a result was made from."""
    return [SourceDigest(**one) for one in entry.manifest["used"]]


def unpacked(entry: CacheEntry) -> int:
    """The bytes that a result takes as files."""
    made = entry.manifest["unpacked"]
    return int(made["bytes"] + made["entries"] * BYTES_PER_FILE)


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedSteps:
    """`surroundings` are those of `stepkey.key`.

    `record` is what the image's sources without a pin were when they were first used: a result
    that was made from something else is not this image's, though all that was decided is the same.
    """

    store: Store
    surroundings: Mapping[str, str]
    record: Mapping[str, str]

    def key(self, step: Step, below: Sequence[CacheEntry]) -> str:
        """The key of a step's result, on the results of the steps before it."""
        digest = below[-1].digest(SQUASHFS) if below else ""
        plain = step_key.key(step, self.surroundings, digest)
        found = self.store.peek(plain)
        held = self._held(found) if found else {}
        return step_key.key(step, {**self.surroundings, **held}, digest) if held else plain

    def leading(self, plan: Plan) -> list[CacheEntry]:
        """The results of the first steps that look whole, up to one that is not there."""
        found: list[CacheEntry] = []
        for step in plan.steps:
            entry = self.store.peek(self.key(step, found))
            if entry is None:
                break
            found.append(entry)
        return found

    def _held(self, entry: CacheEntry) -> dict[str, str]:
        """What its sources would have to be, if they are something else."""
        sources = used(entry)
        expected = {one.key: self.record.get(one.key, one.digest) for one in sources}
        return expected if any(expected[one.key] != one.digest for one in sources) else {}
