"""What is asked of a build, and what a record says of an image that already is that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sifwright.build.request import base_image
from sifwright.build.request.build_request import BuildRequest
from sifwright.render.definition import digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sifwright.build.request.build_context import Layout
    from sifwright.plan.model import Plan

__all__ = ["BuildOptions", "facts", "order"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildOptions:
    """How to build: `layout` of the SIF, `force` even if it is there, with or without the cache.

    `tests`: those of all layers, or those that have not passed as they are now. `before` names the
    layer to stop before, without an image.
    """

    layout: Layout
    before: str = ""
    engine: Literal["apptainer", "docker"] = "apptainer"
    format: Literal["sif", "image"] = "sif"
    tests: Literal["all", "untested"] = "all"
    force: bool = False
    cached: bool = True


def facts(plan: Plan, options: BuildOptions) -> dict[str, str]:
    """What the record of the image has to say; see `Output.is_current`."""
    return order(plan, options).facts()


def order(plan: Plan, options: BuildOptions, notes: Sequence[str] = ()) -> BuildRequest:
    """What a plan and the options are in short; `notes` are what there is to say of them."""
    return BuildRequest(
        site=plan.site.name,
        image=plan.image.name,
        plan=plan.id,
        wanted={
            "definition_sha256": digest(plan),
            "site_compression": plan.site.compression,
            "layout": options.layout,
            **({"tested": "all"} if options.tests == "all" else {}),
            **({"steps": options.engine} if options.engine != "apptainer" else {}),
        },
        base=base_image.local_name(plan),
        base_layer=plan.steps[0].layer.name,
        notes=notes,
        program=_program(plan),
    )


def _program(plan: Plan) -> str:
    """Choose a command that shows what the image is for; none where it starts its own."""
    if not plan.has_run_scripts:
        return "" if plan.image.start else "bash"
    what = "-c 'import torch'" if "torch" in plan.facts else "--version"
    return f"conda-python-simple {what}"
