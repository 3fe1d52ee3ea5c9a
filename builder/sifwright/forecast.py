"""What a build would do: which steps are cached, which will run and why, how long, how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright import stepkey

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sifwright.cachedsteps import CachedSteps
    from sifwright.model import Plan, Step
    from sifwright.store.store import Entry

__all__ = ["Outlook", "forecast"]

_DIGEST = 64
_SHOWN = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """One step. `why` it will run is empty if it is cached.

    `seconds` and `bytes` (of the packed layer) are those of the same layer's last result; None if
    there is none.
    """

    layer: str
    why: str
    seconds: float | None
    bytes: int | None


def forecast(plan: Plan, cached: CachedSteps) -> Iterator[Outlook]:
    """Look every step up in the cache; nothing is changed there."""
    found, earlier = cached.leading(plan), cached.store.entries()
    for number, step in enumerate(plan.steps):
        if number < len(found):
            yield _outlook(step, found[number], "")
            continue
        last = _last(plan, step, earlier)
        below = plan.steps[number - 1].layer.name if number else ""
        yield _outlook(step, last, _why(step, cached.surroundings, last) or f"after {below}")


def _outlook(step: Step, entry: Entry | None, why: str) -> Outlook:
    return Outlook(
        layer=step.layer.name,
        why=why,
        seconds=entry.manifest["seconds"] if entry else None,
        bytes=entry.bytes if entry else None,
    )


def _last(plan: Plan, step: Step, entries: Sequence[Entry]) -> Entry | None:
    """The layer's result that was used last: of this image, else of another one."""
    same = [entry for entry in entries if entry.manifest["layer"] == step.layer.name]
    place = (plan.site.name, plan.image.name)
    own = [one for one in same if (one.manifest["site"], one.manifest["image"]) == place]
    return next(iter(own or same), None)


def _why(step: Step, surroundings: Mapping[str, str], last: Entry | None) -> str:
    """The first input that is not what it was; empty if all are."""
    if last is None:
        return "it was never built here"
    old, new = last.manifest["inputs"], stepkey.inputs(step, surroundings)
    for name in (*new, *old):
        if old.get(name) != new.get(name):
            return f"{name}: {_shown(old.get(name))} -> {_shown(new.get(name))}"
    return ""


def _shown(value: str | None) -> str:
    """A value, the beginning of a digest, or a word for one that is not there."""
    if value is None:
        return "(none)"
    return value[:_SHOWN] if len(value) >= _DIGEST else value or "(empty)"
