"""The plan as plan.json: written for the image, and read from a file, a record or an image."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sifwright.catalog.model import Value
from sifwright.plan.model import Plan, StepSource

# Path of the plan in every image of ours.
IN_IMAGE = b"opt/sifwright/plan.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepFacts:
    """A step as a plan document describes it."""

    layer: str
    id: str
    options: Mapping[str, Value] = field(default_factory=dict)
    sources: tuple[StepSource, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanFacts:
    """A plan as its document describes it; other versions of sifwright may have written it."""

    site: str
    image: str
    id: str
    facts: Mapping[str, str]
    steps: tuple[StepFacts, ...]
    left_out: Mapping[str, str]


def parse_plan(text: bytes | str) -> PlanFacts:
    """Read the JSON of a plan, or of a record that has one; `ValueError` says why it is none."""
    try:
        document = json.loads(text)
        plan = document.get("plan", document)
        return PlanFacts(
            site=str(plan["site"]),
            image=str(plan["image"]),
            id=str(plan["id"]),
            facts=_texts(plan.get("facts", {})),
            steps=tuple(map(_step, plan["steps"])),
            left_out=_texts(plan.get("left_out", {})),
        )
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError("holds no plan") from error


def _step(document: Mapping[str, Any]) -> StepFacts:
    return StepFacts(
        layer=str(document["layer"]),
        id=str(document["id"]),
        options={
            str(name): Value(value=given["value"], origin=str(given.get("origin", "")))
            for name, given in document["options"].items()
        },
        sources=tuple(map(_source, document.get("sources", ()))),
    )


def _source(document: Mapping[str, Any]) -> StepSource:
    names = ("name", "kind", "url", "ref", "version", "digest")
    known: dict[str, Any] = {name: str(document.get(name, "")) for name in names}
    return StepSource(**known)


def _texts(document: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in document.items()}


def settings_of(plan: PlanFacts) -> list[str]:
    """Return the options of --set that a plan was made with."""
    return [
        f"{step.layer}.{name}={value.text}"
        for step in plan.steps
        for name, value in step.options.items()
        if value.origin == "--set"
    ]


def plan_document(plan: Plan) -> dict[str, object]:
    """Return the plan as plain data, for `plan --json`, plan.json and the image."""
    return {
        "site": plan.site.name,
        "vendor": plan.site.fact("vendor"),
        "processor": plan.site.fact("processor"),
        "image": plan.image.name,
        "id": plan.id,
        "facts": dict(plan.facts),
        "steps": [
            {
                "layer": step.layer.name,
                "id": step.id,
                "options": {
                    name: {"value": value.value, "origin": value.origin}
                    for name, value in step.options.items()
                },
                "sources": [dataclasses.asdict(source) for source in step.sources],
            }
            for step in plan.steps
        ],
        "left_out": {item.layer: item.reason for item in plan.left_out},
    }


@cache
def plan_json(plan: Plan) -> str:
    """Return the text of plan.json, in the image and beside it; run-tests.sh reads its lines."""
    return json.dumps(plan_document(plan), indent=1, ensure_ascii=False) + "\n"
