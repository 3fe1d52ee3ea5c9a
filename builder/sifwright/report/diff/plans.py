"""Compare two plans: layers, and the reasons for other steps."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass
from itertools import takewhile

from sifwright.plan.plan_file import PlanFacts, StepFacts

Inputs = tuple[Mapping[str, Mapping[str, str]], Mapping[str, Mapping[str, str]]]

# Inputs of a step (step_keys.py) that no plan decides; options and sources are in its document.
_BUILD_ENVIRONMENT = {
    *("ids", "processor", "compression", "packing", "base image"),
    "sifwright's programs",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """Something with a name; None is where it is not there."""

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerChange:
    """A layer with another step.

    `after` is a changed or removed layer before it that is the cause. If all fields are empty, the
    cause is unknown.
    """

    layer: str
    options: tuple[Change, ...] = ()
    sources: tuple[Change, ...] = ()
    files: tuple[Change, ...] = ()
    after: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanChanges:
    """All differences between two plans; `reordered`: common layers have another order."""

    target: tuple[Change, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[LayerChange, ...] = ()
    facts: tuple[Change, ...] = ()
    reordered: bool = False

    def __bool__(self) -> bool:
        return any(astuple(self))

    def document(self) -> dict[str, object]:
        data = asdict(self)
        return {"place": data.pop("target"), **data}


def compare(old: PlanFacts, new: PlanFacts, inputs: Inputs = ({}, {})) -> PlanChanges:
    """Compare two plans."""
    before = {step.layer: step for step in old.steps}
    after = {step.layer: step for step in new.steps}
    common = [name for name in after if name in before]
    names = {"site": old.site, "image": old.image}, {"site": new.site, "image": new.image}
    return PlanChanges(
        target=tuple(_changes(*names)),
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed=tuple(_changed(before, after, inputs)),
        facts=tuple(_changes(old.facts, new.facts)),
        reordered=common != [name for name in before if name in after],
    )


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
    for name in dict.fromkeys((*new, *old)):
        if old.get(name) != new.get(name):
            yield Change(name=name, old=old.get(name), new=new.get(name))


def _changed(
    old: Mapping[str, StepFacts], new: Mapping[str, StepFacts], inputs: Inputs
) -> Iterator[LayerChange]:
    """Yield the layers with differing step ids, with changed inputs or earlier layers as reason."""
    cause = ""
    for layer, step in new.items():
        if layer in old and old[layer].id != step.id:
            own = _own(old[layer], step, inputs)
            gone = (earlier for earlier in takewhile(layer.__ne__, old) if earlier not in new)
            yield own or LayerChange(layer=layer, after=cause or next(gone, ""))
        if layer not in old or old[layer].id != step.id:
            cause = cause or layer


def _own(old: StepFacts, new: StepFacts, inputs: Inputs) -> LayerChange | None:
    """Return the changes in the layer itself; None if none is known."""
    known = [pair.get(step.id, {}) for pair, step in zip(inputs, (old, new), strict=True)]
    change = LayerChange(
        layer=new.layer,
        options=tuple(_changes(_options(old), _options(new))),
        sources=tuple(_changes(_sources(old), _sources(new))),
        files=tuple(_changes(*map(_files, known))) if all(known) else (),
    )
    return change if change.options or change.sources or change.files else None


def _options(step: StepFacts) -> dict[str, str]:
    return {name: choice.text for name, choice in step.options.items()}


def _sources(step: StepFacts) -> dict[str, str]:
    return {
        source.name: " ".join(filter(None, (source.version, source.url, source.ref, source.digest)))
        for source in step.sources
    }


def _files(inputs: Mapping[str, str]) -> dict[str, str]:
    """Return changes of scripts, files and variables, which a plan document does not have."""
    return {
        name: value
        for name, value in inputs.items()
        if name not in _BUILD_ENVIRONMENT and not name.startswith(("option ", "source "))
    }
