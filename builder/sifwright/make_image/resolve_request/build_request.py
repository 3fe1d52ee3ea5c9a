"""A request for a build: a plan, the folder of its image, and the options."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sifwright.make_image.resolve_request.base_image import BaseImage, base_image_of
from sifwright.make_image.resolve_request.epoch import source_epoch
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.make_image.resolve_request.recorded_inputs import Inputs
from sifwright.plan.model import Plan
from sifwright.render.definition import planned_definition, rendered_from

if TYPE_CHECKING:
    from sifwright.make_image.lock_format.lock_file import Lock

Layout = Literal["flat", "layered"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildOptions:
    """Options of a build: `layout` of the SIF, `force` for an image that is up to date, the cache.

    `tests`: those of all layers, or those that have not passed as they are now. `before` names the
    layer to stop before, without an image. `secrets` are the contents of files for steps. `sign`
    names the key that signs the SIF. `epoch` is the time that the image has for all of its files,
    in seconds since 1970. `files` is the folder with the files of a `lock`. `follow_tag` takes the
    base image that its tag names now, not the image of earlier builds.
    """

    layout: Layout
    before: str = ""
    engine: Literal["apptainer", "docker"] = "apptainer"
    format: Literal["sif", "image"] = "sif"
    tests: Literal["all", "untested"] = "all"
    force: bool = False
    cached: bool = True
    lock: Lock | None = None
    files: Path | None = None
    secrets: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    sign: str = ""
    epoch: int = field(default_factory=source_epoch)
    follow_tag: bool = False


@dataclass(frozen=True, kw_only=True)
class BuildRequest:
    """A plan with its base, a folder, and options.

    `entries` are those of the record of such an image, without those of its definition file.
    """

    plan: Plan
    base: BaseImage
    output: ImageFolder
    options: BuildOptions
    entries: Mapping[str, str | int]

    @property
    def planned(self) -> str:
        """Return the definition file without the machine's values."""
        return planned_definition(self.plan)

    @property
    def expected(self) -> Mapping[str, str | int]:
        """Return entries of the record of such an image."""
        return {**self._definition, "rendered_from": rendered_from(self.plan)}

    @property
    def _definition(self) -> Mapping[str, str | int]:
        digest = hashlib.sha256(self.planned.encode()).hexdigest()
        return {**self.entries, "definition_sha256": digest}

    @property
    def is_current(self) -> bool:
        """Return whether the image is there; for the same plan, nothing is rendered to compare."""
        same_plan = {**self.entries, "rendered_from": rendered_from(self.plan)}
        return self.output.is_current(same_plan) or self.output.is_current(self._definition)

    @cached_property
    def recorded_inputs(self) -> Inputs:
        """Return the inputs of the last build, or those of the lock."""
        inputs = Inputs.recorded(self.base, self.output.pins_folder)
        inputs = replace(inputs, epoch=self.options.epoch)
        if self.options.lock and self.options.files:
            return inputs.locked(self.options.lock, self.options.files)
        return inputs.without_base() if self.options.follow_tag else inputs


def request_build(plan: Plan, output: ImageFolder, options: BuildOptions) -> BuildRequest:
    base = base_image_of(plan)
    entries: dict[str, str | int] = {
        "site_compression": plan.site.compression,
        "layout": options.layout,
        "epoch": options.epoch,
        **({"tested": "all"} if options.tests == "all" else {}),
        **({"steps": options.engine} if options.engine != "apptainer" else {}),
        **({"lock": options.lock.digest} if options.lock else {}),
        "base_sha256": base.local_digest(),
    }
    if options.format == "image":
        output = output.of_engine(plan.site.name)
    return BuildRequest(
        plan=plan,
        base=base,
        output=output,
        options=options,
        entries=entries,
    )
