"""A cache as a build would leave it, without an engine."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from sifwright.make_image.cache.manifest import CacheEntry
from sifwright.make_image.cache.store import Store
from sifwright.make_image.pack_layers.pack import LISTING, SQUASHFS
from sifwright.make_image.resolve_request.base_image import base_image_of
from sifwright.make_image.resolve_request.recorded_inputs import Inputs
from sifwright.make_image.run_steps import step_keys
from sifwright.make_image.run_steps.step_keys import CachedSteps
from sifwright.plan.model import Plan
from sifwright.plan.source_digest import SourceDigest
from sifwright.system import cache_folder

__all__ = ["ENTRIES", "PACKED", "SECONDS", "UNPACKED", "build"]

# Numbers of the first step; the step with the number n has n + 1 times as much.
PACKED, UNPACKED, ENTRIES, SECONDS = 1000, 5000, 10, 1.5


def build(
    plan: Plan,
    folder: Path,
    *,
    digest: str = "",
    used: Sequence[SourceDigest] = (),
    capable: Collection[str] = (),
) -> list[CacheEntry]:
    """Leave a result of each step; `digest` is the base image's, `used` what the last one used.

    `capable` are the layers with files that have capabilities.
    """
    cache_folder.make(cache_folder.root())
    store = Store(root=cache_folder.root())
    inputs = Inputs.recorded(base_image_of(plan), folder)
    cached = CachedSteps.of(plan.site, replace(inputs, digest=digest or inputs.digest), store)
    results: list[CacheEntry] = []
    for number, step in enumerate(plan.steps, start=1):
        key = cached.key(step, results)
        facts = {
            "layer": step.layer.name,
            "step": step.id,
            "site": plan.site.name,
            "image": plan.image.name,
            "inputs": step_keys.step_inputs(step, cached.build_environment),
            "used": [asdict(used_step) for used_step in used] if number == len(plan.steps) else [],
            "unpacked": {"entries": ENTRIES * number, "bytes": UNPACKED * number},
            "capabilities": step.layer.name in capable,
            "seconds": SECONDS * number,
        }
        with store.folder() as staging:
            (staging / LISTING).write_bytes(b"")
            (staging / SQUASHFS).write_bytes(key.encode().ljust(PACKED * number))
            results.append(store.put(key, staging, facts)[0])
    return results
