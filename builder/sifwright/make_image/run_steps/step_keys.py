"""The results of steps in the cache: their keys, and those of a plan that are there.

step_life.py makes a result that is not there.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Self

from sifwright.catalog.model import Site
from sifwright.make_image.cache.store import CacheEntry, Store
from sifwright.make_image.pack_layers.pack import FORMAT, SQUASHFS
from sifwright.make_image.resolve_request.recorded_inputs import Inputs
from sifwright.plan.model import Plan, Step
from sifwright.render import build_files
from sifwright.system import ids

OPTION = "option "


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedSteps:
    """The cached results that belong to an image; `build_environment` is that of `step_key`.

    `record` has the digests of the image's unpinned sources at their first use. A cached result
    built from other source digests is not reused.
    """

    store: Store
    build_environment: Mapping[str, str]
    record: Mapping[str, str]

    @classmethod
    def of(cls, site: Site, inputs: Inputs, store: Store) -> Self:
        """Return the cache as builds with these inputs see it.

        A step with one uid gives the same result, unless a program in it did without another uid.
        """
        build_environment = {
            **({"ids": "one"} if ids.are_one() else {}),
            "processor": site.processor,
            "compression": site.compression,
            "packing": FORMAT,
            "base image": inputs.digest,
            "epoch": str(inputs.epoch),
            **({"lock": inputs.lock} if inputs.lock else {}),
        }
        return cls(store=store, build_environment=build_environment, record=inputs.record)

    def key(self, step: Step, below: Sequence[CacheEntry]) -> str:
        """Return the key of a step's result, on the results of the steps before it."""
        digest = below[-1].digest(SQUASHFS) if below else ""
        plain = step_key(step, self.build_environment, digest)
        if (entry := self.store.peek(plain)) is None:
            return plain
        # The digests that its sources would need, if some differ.
        digests = {source.key: source.digest for source in entry.sources}
        expected = {key: self.record.get(key, digest) for key, digest in digests.items()}
        if expected == digests:
            return plain
        return step_key(step, {**self.build_environment, **expected}, digest)

    def leading(self, plan: Plan) -> list[CacheEntry]:
        """Return the results of the first steps that look whole, up to a cache miss."""
        entries: list[CacheEntry] = []
        for step in plan.steps:
            entry = self.store.peek(self.key(step, entries))
            if entry is None:
                break
            entries.append(entry)
        return entries


def step_key(step: Step, build_environment: Mapping[str, str], below: str) -> str:
    """Return the key of a step's result.

    A step id covers the decisions of the step and of all steps before it. `below` is the digest of
    the result of the step before, so results of different builds are never mixed.
    `build_environment` has everything else that decides the bytes: the base image as it is now, the
    processor, the compression. The key also covers sifwright's programs that run a step.
    """
    facts = {**build_environment, "step": step.id, "below": below, "programs": _programs()}
    return _digest(json.dumps(facts, sort_keys=True).encode())


def step_inputs(step: Step, build_environment: Mapping[str, str]) -> dict[str, str]:
    """Return a step's inputs beside earlier steps: name -> value, or digest of a file."""
    return {**build_environment, "sifwright's programs": _programs(), **dict(_own(step))}


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
