"""The content of the page about an image, from its folder, its SIF and the cache."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sifwright.errors import MachineError, SifwrightError
from sifwright.images.contents import listing, packages
from sifwright.images.contents.layer_stack import LayerStack, stacked
from sifwright.images.contents.packages import Package
from sifwright.images.sif import sif_file
from sifwright.images.sif.format import DataType
from sifwright.make_image.attest import write_statements
from sifwright.make_image.cache.store import CacheEntry, Store
from sifwright.make_image.pack_layers.pack import LISTING, SQUASHFS
from sifwright.make_image.publish_image import recipe_folder
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.plan import plan_file
from sifwright.plan.plan_file import PlanFacts
from sifwright.report.page import sizes
from sifwright.report.page.sizes import LayerSize
from sifwright.system import small_file


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One step of the build; seconds since it began."""

    step: str
    state: str
    start: float
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """The content of the page; `record` is the build's record as it is.

    `statements` are the sizes of SBOM and provenance. `by_layer` says if the layer of each file is
    known. An installation on the host has a `prefix`, and no SIF.
    """

    plan: PlanFacts
    record: Mapping[str, Any]
    events: tuple[Event, ...]
    definition: str
    layers: tuple[LayerSize, ...]
    by_layer: bool
    packages: tuple[Package, ...]
    packed: int
    statements: Mapping[str, int] = field(default_factory=dict)
    prefix: str = ""


def gather(output: ImageFolder) -> Facts:
    """Read an image that was built; raises `UsageError` if its SIF cannot be read.

    The layers of files in a flat SIF are known as long as the cache has its steps.
    """
    stack = LayerStack.of(output.link)
    wanted = [*packages.sources(stack.tree, names_only=False), plan_file.IN_IMAGE]
    texts = stack.texts(wanted)
    record = _record(output.record)
    plan = _plan(record, texts.get(plan_file.IN_IMAGE, b""), output.link)
    installed = packages.find(texts, stack.tree)
    layers, by_layer = _layers(stack, plan, installed)
    return Facts(
        plan=plan,
        record=record,
        events=timeline(record),
        definition=_definition(output, plan),
        layers=tuple(layers),
        by_layer=by_layer,
        packages=tuple(installed),
        packed=output.link.stat().st_size,
        statements={
            item.name: item.size
            for item in sif_file.read(output.link).descriptors
            if item.name in write_statements.FILES
        },
    )


def _definition(output: ImageFolder, plan: PlanFacts) -> str:
    """Return the definition file of the recipe folder if it is this plan's; else the SIF's."""
    path = output.folder / recipe_folder.FOLDER / f"{plan.image}.def"
    with suppress(OSError):
        text = path.read_text(encoding="utf-8", errors="replace")
        if f"org.sifwright.plan {plan.id}\n" in text:
            return text
    data = sif_file.data_of(sif_file.read(output.link), DataType.DEFINITION)
    return data.decode(errors="replace")


def timeline(record: Mapping[str, Any]) -> tuple[Event, ...]:
    """Return the steps of the build in their order; nothing if the record has none."""
    try:
        return tuple(
            Event(
                step=str(event["step"]),
                state=str(event["state"]),
                start=float(event["start"]),
                seconds=float(event["seconds"]),
            )
            for event in record["timeline"]
        )
    except (TypeError, ValueError, LookupError, AttributeError):
        return ()


def _record(path: Path) -> dict[str, Any]:
    """Return the record, or {}: the page can do without it."""
    record = small_file.read_object(path)
    return record if isinstance(record.get("sources", []), list) else {}


def _plan(record: Mapping[str, Any], text: bytes, sif: Path) -> PlanFacts:
    """Return the plan in the image, else the plan in its record."""
    for source in (text, json.dumps(record)):
        try:
            return plan_file.parse_plan(source)
        except ValueError:
            continue
    fix = "Build it again: sifwright build"
    raise MachineError.of("neither the image nor its record holds a plan", where=str(sif), fix=fix)


def _layers(
    stack: LayerStack, plan: PlanFacts, packages: Sequence[Package]
) -> tuple[list[LayerSize], bool]:
    """Return the layers with their sizes, and whether the SIF or the cache knows them."""
    if len(stack.names) > 1:
        own = list(zip(stack.names, stack.sizes, strict=True))
        return sizes.attribute(stack.tree, packages, own), True
    entries = _entries(plan)
    if not entries:
        return sizes.attribute(stack.tree, packages, [("image", stack.sizes[0])]), False
    known = stacked([listing.read(entry.file(LISTING)) for entry in entries])
    tree = sizes.regrouped(stack.tree, known, len(entries))
    packed = [int(entry.manifest["files"][SQUASHFS]["bytes"]) for entry in entries]
    named = list(zip((step.layer for step in plan.steps), packed, strict=True))
    return sizes.attribute(tree, packages, [*named, ("metadata", 0)]), True


def _entries(plan: PlanFacts) -> list[CacheEntry]:
    """Return the cached results of all steps, the lowest first; [] if one is missing."""
    try:
        store = Store.look()
        last = (entry for entry in store.entries() if entry.manifest.get("step") == plan.id)
        entry, entries = next(last, None), []
        while entry is not None:
            entries.append(entry)
            below = entry.manifest["below"]
            entry = store.peek(below) if below else None
    except (SifwrightError, LookupError):
        return []
    steps = [entry.manifest.get("step") for entry in reversed(entries)]
    return entries[::-1] if steps == [step.id for step in plan.steps] else []
