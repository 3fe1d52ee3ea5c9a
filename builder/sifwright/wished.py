"""What is asked of a build, and what a record says of an image that already is that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sifwright import baseimage
from sifwright.order import Order
from sifwright.render.definition import digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sifwright.model import Plan
    from sifwright.task import Layout

__all__ = ["Wishes", "facts", "order"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """How to build: `layout` of the SIF, `force` even if it is there, with or without the cache.

    `tests`: those of all layers, or those that have not passed as they are now. `before` names the
    layer to stop before, without an image.
    """

    layout: Layout
    before: str = ""
    engine: Literal["apptainer", "docker"] = "apptainer"
    format: Literal["sif", "image"] = "sif"
    tests: Literal["all", "changed"] = "all"
    force: bool = False
    cached: bool = True


def facts(plan: Plan, wishes: Wishes) -> dict[str, str]:
    """What the record of the image has to say; see `Output.is_current`."""
    return order(plan, wishes).facts()


def order(plan: Plan, wishes: Wishes, notes: Sequence[str] = ()) -> Order:
    """What a plan and the wishes are in short; `notes` are what there is to say of them."""
    return Order(
        site=plan.site.name,
        image=plan.image.name,
        plan=plan.id,
        wanted={
            "definition_sha256": digest(plan),
            "site_compression": plan.site.compression,
            "layout": wishes.layout,
            **({"tested": "all"} if wishes.tests == "all" else {}),
            **({"steps": wishes.engine} if wishes.engine != "apptainer" else {}),
        },
        base=baseimage.local_name(plan),
        base_layer=plan.steps[0].layer.name,
        notes=notes,
        has_run_scripts=any("run-scripts" in step.layer.provides for step in plan.steps),
    )
