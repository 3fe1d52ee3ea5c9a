"""A request for a build: a plan, the folder of its image, and the options."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sifwright.build.request.base_image import BaseImage, base_image_of
from sifwright.render.definition import planned_definition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sifwright.build.request.image_folder import ImageFolder
    from sifwright.plan.model import Plan

Layout = Literal["flat", "layered"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildOptions:
    """Options of a build: `layout` of the SIF, `force` for an image that is up to date, the cache.

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


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildRequest:
    """A plan with its base, a folder, and options.

    `expected` are entries of the record of such an image.
    """

    plan: Plan
    base: BaseImage
    output: ImageFolder
    options: BuildOptions
    expected: Mapping[str, str]

    @property
    def is_current(self) -> bool:
        """Return whether such an image is in the folder."""
        return self.output.is_current(self.expected)


def request_build(plan: Plan, output: ImageFolder, options: BuildOptions) -> BuildRequest:
    """Return the request for the image of a plan."""
    base = base_image_of(plan)
    expected = {
        "definition_sha256": hashlib.sha256(planned_definition(plan).encode()).hexdigest(),
        "site_compression": plan.site.compression,
        "layout": options.layout,
        **({"tested": "all"} if options.tests == "all" else {}),
        **({"steps": options.engine} if options.engine != "apptainer" else {}),
        "base_sha256": base.local_digest(),
    }
    if options.format == "image":
        output = output.of_engine(plan.site.name)
    return BuildRequest(
        plan=plan,
        base=base,
        output=output,
        options=options,
        expected=expected,
    )
