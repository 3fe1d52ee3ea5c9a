"""The options of a build, and the record that an up-to-date image has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sifwright.build.request import base_image
from sifwright.render.definition import digest

if TYPE_CHECKING:
    from sifwright.plan.model import Plan

__all__ = ["BuildOptions", "Layout", "expected_record"]

Layout = Literal["flat", "layered"]


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


def expected_record(plan: Plan, options: BuildOptions) -> dict[str, str]:
    """Return the entries that the record of an up-to-date image has."""
    return {
        "definition_sha256": digest(plan),
        "site_compression": plan.site.compression,
        "layout": options.layout,
        **({"tested": "all"} if options.tests == "all" else {}),
        **({"steps": options.engine} if options.engine != "apptainer" else {}),
        "base_sha256": base_image.digest_of_local(base_image.local_name(plan)),
    }
