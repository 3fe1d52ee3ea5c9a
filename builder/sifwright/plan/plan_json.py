"""A plan as plain data: what `plan --json` prints and what images and records carry."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sifwright.plan.model import Plan

__all__ = ["plan_document", "plan_json"]


def plan_document(plan: Plan) -> dict[str, object]:
    """Return the plan as plain data, for `plan --json`, plan.json and the image."""
    return {
        "site": plan.site.name,
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


def plan_json(plan: Plan) -> str:
    """Return the text of plan.json, in the image and beside it."""
    return json.dumps(plan_document(plan), indent=1) + "\n"
