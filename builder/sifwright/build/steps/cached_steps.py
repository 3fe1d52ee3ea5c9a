"""The results of steps in the cache: their keys, and those of a plan that are there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Self

from sifwright.build.layers.pack import FORMAT, SQUASHFS
from sifwright.render import build_files
from sifwright.system import ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sifwright.build.cache.store import CacheEntry, Store
    from sifwright.build.request.inputs import Inputs
    from sifwright.catalog.model import Site
    from sifwright.plan.model import Plan, Step

OPTION = "option "


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedSteps:
    """`surroundings` are those of `step_key`.

    `record` is what the image's sources without a pin were when they were first used: a result
    that was made from something else is not this image's, though all that was decided is the same.
    """

    store: Store
    surroundings: Mapping[str, str]
    record: Mapping[str, str]

    @classmethod
    def of(cls, site: Site, inputs: Inputs, store: Store) -> Self:
        """Return the cache as builds with these inputs see it.

        A step with one uid gives the same result, unless a program in it did without another uid.
        """
        surroundings = {
            **({"ids": "one"} if ids.are_one() else {}),
            "processor": site.processor,
            "compression": site.compression,
            "packing": FORMAT,
            "base image": inputs.digest,
        }
        return cls(store=store, surroundings=surroundings, record=inputs.record)

    def key(self, step: Step, below: Sequence[CacheEntry]) -> str:
        """Return the key of a step's result, on the results of the steps before it."""
        digest = below[-1].digest(SQUASHFS) if below else ""
        plain = step_key(step, self.surroundings, digest)
        entry = self.store.peek(plain)
        held = self._held(entry) if entry else {}
        return step_key(step, {**self.surroundings, **held}, digest) if held else plain

    def leading(self, plan: Plan) -> list[CacheEntry]:
        """Return the results of the first steps that look whole, up to a cache miss."""
        entries: list[CacheEntry] = []
        for step in plan.steps:
            entry = self.store.peek(self.key(step, entries))
            if entry is None:
                break
            entries.append(entry)
        return entries

    def _held(self, entry: CacheEntry) -> dict[str, str]:
        """Return the digests that its sources would need, if some differ."""
        digests = {source.key: source.digest for source in entry.sources}
        expected = {key: self.record.get(key, digest) for key, digest in digests.items()}
        return expected if expected != digests else {}


def step_key(step: Step, surroundings: Mapping[str, str], below: str) -> str:
    """Return the key of a step's result.

    A step id covers the step and the decisions of those before it; `below` is the digest of what
    the step before made, so that results of different builds are never mixed. `surroundings` is
    what else decides the bytes: the base image as it is now, the processor, the compression.
    sifwright's own programs that run a step belong to it as well.
    """
    facts = {**surroundings, "step": step.id, "below": below, "programs": _programs()}
    return _digest(json.dumps(facts, sort_keys=True).encode())


def step_inputs(step: Step, surroundings: Mapping[str, str]) -> dict[str, str]:
    """Return a step's inputs beside earlier steps: name -> value, or digest of a file."""
    return {**surroundings, "sifwright's programs": _programs(), **dict(_own(step))}


def _own(step: Step) -> Iterator[tuple[str, str]]:
    layer = step.layer
    yield "install.sh", _digest(layer.install.encode())
    for line in layer.bootstrap:
        yield f"bootstrap {line.keyword}", line.literal or f"option {line.option}"
    for rule in layer.env:
        yield f"env {rule.name}", f"{rule.action} {rule.value}"
    for file in step.files:
        yield file.path, f"{_digest(file.data)} {file.executable}"
    for source in step.sources:
        yield f"source {source.name}", json.dumps(asdict(source), sort_keys=True)
    for name, value in step.options.items():
        yield f"{OPTION}{name}", value.text


@cache
def _programs() -> str:
    files = [(file.path, _digest(file.data)) for file in build_files.programs()]
    start = build_files.package_text("render/templates/start.def.j2")
    return _digest(json.dumps([start, *files]).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
