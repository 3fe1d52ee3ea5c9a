"""The forecast of a build: cache hits and misses with reasons, time, and disk space."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from pathlib import Path

from sifwright.make_image.cache.store import CacheEntry, Store
from sifwright.make_image.forecast.disk_needs import BuildMode, DiskNeeds
from sifwright.make_image.resolve_request.base_image import base_image_of
from sifwright.make_image.resolve_request.recorded_inputs import Inputs
from sifwright.make_image.run_steps import step_keys
from sifwright.make_image.run_steps.step_keys import CachedSteps
from sifwright.plan.model import Plan, Step
from sifwright.plan.source_digest import ARCHIVE
from sifwright.system import cache_folder, ids
from sifwright.system.free_space import BYTES_PER_FILE

# After so many, Debian's security archive has something new for nearly every image.
_DAYS = 7
_DIGEST = 64
_SHOWN = 12
# A build's own files below the temporary folder while steps run: settings, programs.
OWN = 10**6


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheMissReason:
    """The reason for a cache miss: message, changed input, old and new value.

    `input` is a name of `step_inputs`; a missing value is None. `after` is an earlier layer that
    will run.
    """

    text: str
    input: str = ""
    old: str | None = None
    new: str | None = None
    after: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepForecast:
    """One step; it is cached if there is no `why`.

    `seconds` and `bytes` (of the packed layer) come from the last result of the same layer; None
    without a result. `capabilities`: the result has files with capabilities, so later steps run in
    a tree (see step_life.py).

    `unpacked`, `packed` and `downloads` estimate bytes: while the step runs, of the cached result,
    of wheels in the cache. They come from the last result, else from the layer's own facts. `files`
    counts files and folders. `archives` is the time of the newest Debian or Ubuntu archive of the
    result's packages, or empty.
    """

    layer: str
    why: CacheMissReason | None
    seconds: float | None
    bytes: int | None
    unpacked: int
    packed: int
    downloads: int
    capabilities: bool
    archives: str = ""
    files: int = 0


def forecast(plan: Plan, inputs: Inputs) -> Iterator[StepForecast]:
    """Look every step up in the cache; nothing is changed there."""
    cached = CachedSteps.of(plan.site, inputs, Store(root=cache_folder.root()))
    entries = cached.leading(plan)
    earlier = cached.store.entries() if len(entries) < len(plan.steps) else []
    for number, step in enumerate(plan.steps):
        entry, why = next(iter(entries[number:]), None), None
        if entry is None:
            entry = _last(plan, step, earlier)
            why = _why(step, cached.build_environment, entry) or _reason_from_order(
                plan, number, len(entries)
            )
        yield _forecast_step(plan, step, entry, why)


def document(forecast_of_steps: Sequence[StepForecast]) -> dict[str, object]:
    """Return the forecast as plain data; totals are of the steps that will run, if known."""
    ahead = [step for step in forecast_of_steps if step.why]
    steps = [
        {
            "layer": step.layer,
            "state": "will run" if step.why else "cached",
            "why": asdict(step.why) if step.why else None,
            "seconds": step.seconds,
            "bytes": step.bytes,
        }
        for step in forecast_of_steps
    ]
    seconds, size = sum(step.seconds or 0 for step in ahead), sum(step.bytes or 0 for step in ahead)
    return {"steps": steps, "will_run": len(ahead), "seconds": round(seconds, 3), "bytes": size}


def _forecast_step(
    plan: Plan, step: Step, entry: CacheEntry | None, why: CacheMissReason | None
) -> StepForecast:
    declared = plan.declared_bytes(step)
    unpacked, packed, archives = declared, declared // 2, []
    if entry:
        packed, unpacked = entry.bytes, entry.unpacked
        archives = [source.digest for source in entry.sources if source.source == ARCHIVE]
        inputs = entry.manifest["inputs"].items()
        options = {name: value for name, value in inputs if name.startswith(step_keys.OPTION)}
        # Other options may take many times as much: wheels for CUDA instead of those for CPUs.
        is_another = options != {
            f"{step_keys.OPTION}{name}": value.text for name, value in step.options.items()
        }
        packed = max(packed, declared // 2) if is_another else packed
        # A compilation takes more space than its result.
        unpacked = max(unpacked, declared) if step.sources or is_another else unpacked
    return StepForecast(
        layer=step.layer.name,
        why=why,
        seconds=entry.manifest["seconds"] if entry else None,
        bytes=entry.bytes if entry else None,
        unpacked=unpacked,
        packed=packed,
        # Wheels are compressed as well.
        downloads=packed if any(download.pip for download in step.layer.downloads) else 0,
        capabilities=bool(entry and entry.manifest["capabilities"]),
        archives="" if why else max(archives, default=""),
        files=entry.manifest["unpacked"]["entries"] if entry else declared // BYTES_PER_FILE,
    )


def old_packages_note(steps: Sequence[StepForecast], now: datetime) -> str:
    dates = [(step.archives, step.layer) for step in steps if step.archives]
    if not dates:
        return ""
    date, layer = min(dates)
    days = (now - datetime.fromisoformat(date)).days
    if days < _DAYS:
        return ""
    return (
        f"the cached result of {layer} has the packages of {date[:10]}, {days} days ago;"
        " 'sifwright build --no-cache' takes today's"
    )


def _last(plan: Plan, step: Step, entries: Sequence[CacheEntry]) -> CacheEntry | None:
    """Return the layer's result that was used last, of this image or else of another."""
    own = {"site": plan.site.name, "image": plan.image.name}
    same = [entry for entry in entries if entry.manifest["layer"] == step.layer.name]
    ours = [entry for entry in same if all(entry.manifest[key] == own[key] for key in own)]
    return next(iter(ours or same), None)


def _why(
    step: Step, build_environment: Mapping[str, str], last: CacheEntry | None
) -> CacheMissReason | None:
    if last is None:
        return CacheMissReason(text="it was never built here")
    old, new = last.manifest["inputs"], step_keys.step_inputs(step, build_environment)
    for name in (*new, *old):
        before, now = old.get(name), new.get(name)
        if before != now:
            text = f"{name}: {_short(before)} -> {_short(now)}"
            return CacheMissReason(text=text, input=name, old=before, new=now)
    return None


def _reason_from_order(plan: Plan, number: int, cached: int) -> CacheMissReason:
    """Return the reason for a step without a changed input."""
    if number == 0:
        return CacheMissReason(text="its sources are others than those of its first use here")
    below = plan.steps[number - 1].layer.name
    if number > cached:
        return CacheMissReason(text=f"after {below}", after=below)
    return CacheMissReason(text=f"it was not built on this result of {below} yet")


def _short(value: str | None) -> str:
    """Return a value, the beginning of a digest, or a word for a missing one."""
    if value is None:
        return "(none)"
    return value[:_SHOWN] if len(value) >= _DIGEST else value or "(empty)"


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildEstimate:
    """`first` is the number of the first step that will run; `output` is the image's folder.

    `old_packages_note` tells that cached packages are old; it may be empty.
    """

    first: int
    needs: DiskNeeds
    output: Path
    old_packages_note: str = ""


def estimate_disk_needs(
    steps: Sequence[StepForecast], first: int, mode: BuildMode = "cached", *, entered: bool = False
) -> DiskNeeds:
    """Return the space that the steps from number `first` on take, and the image of all steps.

    With nothing cached, all steps run in one tree below the temporary folder. On cached steps, the
    changes of a step are there only until they are packed. If a step has to run in a tree, all
    results below are unpacked there. SIFs are put together at their final path. `entered`: a
    shell is opened on all steps.
    """
    ahead = steps[first:]
    # The last step runs on all others at the latest. With one id it always does so in a tree.
    below = steps if entered else steps[:-1] if first < len(steps) else ()
    in_tree = bool(below) if ids.are_one() else any(step.capabilities for step in below)
    peak = partial(_peak, first=0 if first == 0 or in_tree else first)
    temporary = peak([step.unpacked for step in steps]) + (OWN if ahead or entered else 0)
    packed = sum(step.packed for step in ahead)
    if mode == "uncached":
        temporary += packed
    return DiskNeeds(
        temporary=temporary,
        cache=packed + sum(step.downloads for step in ahead) if mode == "cached" else 0,
        output=sum(step.packed for step in steps),
        temporary_files=peak([step.files for step in steps]),
    )


def _peak(sizes: Sequence[int], first: int) -> int:
    """Return the sum of a tree of all steps, or the largest of the steps from `first` on."""
    return max(sizes[first:], default=0) if first else sum(sizes)


def forecast_steps(plan: Plan, output: Path) -> list[StepForecast]:
    """Return the forecast of a build into this folder, without asking, running or changing.

    Raises `MachineError` for a cache that a build would refuse.
    """
    cache_folder.look(cache_folder.root())
    return list(forecast(plan, Inputs.recorded(base_image_of(plan), output)))


def estimate_build(plan: Plan, inputs: Inputs, mode: BuildMode, before: str) -> BuildEstimate:
    """Estimate a build in this way, or of the steps before a layer for a shell."""
    steps = list(takewhile(lambda step: step.layer != before, forecast(plan, inputs)))
    first = sum(step.why is None for step in steps) if mode == "cached" else 0
    needs = estimate_disk_needs(steps, first, mode, entered=bool(before))
    return BuildEstimate(
        first=first,
        needs=replace(needs, output=0) if before else needs,
        output=inputs.folder,
        old_packages_note=old_packages_note(steps, datetime.now(UTC)) if mode == "cached" else "",
    )


def estimate_cold_build(plan: Plan, output: Path) -> BuildEstimate:
    inputs = Inputs.recorded(base_image_of(plan), output)
    needs = estimate_disk_needs(list(forecast(plan, inputs)), 0)
    return BuildEstimate(first=0, needs=needs, output=output)
