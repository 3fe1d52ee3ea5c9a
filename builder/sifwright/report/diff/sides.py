"""The two sides of a comparison: a SIF, a file with a plan, or a plan resolved now."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sifwright.catalog.model import Catalog
from sifwright.errors import MachineError, UsageError, quoted
from sifwright.images.contents.layer_stack import topmost
from sifwright.make_image.cache.store import Store
from sifwright.make_image.run_steps import step_keys
from sifwright.plan import plan_file
from sifwright.plan.plan_file import PlanFacts, plan_json
from sifwright.plan.resolve import resolve
from sifwright.system import small_file
from sifwright.system.terminal import escape_name

_SUFFIXES = (".sif", ".json")


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """A side of the comparison. A SIF of other makers has no `plan`; other sides have no `sif`.

    `inputs` are what the steps of a plan depend on, by step id, as far as that is known.
    """

    name: str
    kind: Literal["sif", "plan", "defs"]
    plan: PlanFacts | None = None
    sif: Path | None = None
    inputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        facts: dict[str, object] = {"name": escape_name(self.name), "kind": self.kind}
        if self.plan:
            facts |= {"site": self.plan.site, "image": self.plan.image, "plan": self.plan.id}
        if self.sif:
            facts |= {"bytes": self.sif.stat().st_size}
        return facts


def opened(name: str, load: Callable[[str, str], Catalog], settings: Sequence[str]) -> Side:
    """Open what an argument names; `load` reads defs/, for the SITE or SITE/IMAGE that is named.

    Raises `UsageError` for other names, and the errors of resolving a plan.
    """
    path = Path(name)
    if path.is_file():
        return _of_plan_file(path) if _starts_like_json(path) else _of_sif(path)
    site, slash, image = name.partition("/")
    if name.endswith(_SUFFIXES) or "/" in image or (slash and not image) or path.is_symlink():
        fix = "Name a SIF, a plan.json or record.json, or SITE or SITE/IMAGE."
        raise UsageError.of(f"there is no file {quoted(name)}", fix=fix)
    plan = resolve(load(site, image), site, image, list(settings))
    return Side(
        name=name,
        kind="defs",
        plan=plan_file.parse_plan(plan_json(plan)),
        inputs={step.id: step_keys.step_inputs(step, {}) for step in plan.steps},
    )


def _starts_like_json(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(64).lstrip()[:1] == b"{"


def _of_plan_file(path: Path) -> Side:
    try:
        plan = plan_file.parse_plan(small_file.read_bytes(path))
    except (OSError, ValueError) as error:
        fix = "Name plan.json or record.json of an image, or what 'sifwright plan --json' printed."
        raise UsageError.of(str(error), where=escape_name(str(path)), fix=fix) from None
    return Side(name=str(path), kind="plan", plan=plan, inputs=_inputs_in_cache(plan))


def _of_sif(path: Path) -> Side:
    text = topmost(path, plan_file.IN_IMAGE)
    try:
        plan = plan_file.parse_plan(text or b"")
    except ValueError:
        return Side(name=str(path), kind="sif", sif=path)
    return Side(name=str(path), kind="sif", sif=path, plan=plan, inputs=_inputs_in_cache(plan))


def _inputs_in_cache(plan: PlanFacts) -> dict[str, Mapping[str, str]]:
    """Return the inputs of these steps from the cache's manifests, until they are pruned."""
    wanted = {step.id for step in plan.steps}
    try:
        entries = Store.look().entries()
    except MachineError:
        return {}  # it would only have explained more
    by_step = ((str(entry.manifest.get("step")), entry.manifest.get("inputs")) for entry in entries)
    return {step: inputs for step, inputs in by_step if step in wanted and isinstance(inputs, dict)}
