"""The inputs of a build beside its plan: the base image as it is now, and first uses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sifwright.build.cache.store import Store
from sifwright.build.request import base_image, first_use
from sifwright.build.request.first_use import SourceDigest
from sifwright.catalog import image_name
from sifwright.errors import MachineError
from sifwright.host.network import registry
from sifwright.system import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from sifwright.build.request.base_image import BaseImage
    from sifwright.plan.model import Plan

__all__ = ["Inputs"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """`record` is what was used by earlier builds; `digest` says which base image it is now.

    `local` is what of this machine the plan starts from, if it does: `base_image.local_name`.
    """

    record: dict[str, str]
    local: str = ""
    base: BaseImage | None = None
    digest: str = ""

    @classmethod
    def of(cls, plan: Plan, folder: Path, note: Callable[[str], None]) -> Inputs:
        """Ask the registry, and compare with what was used before.

        A digest needs no asking. A registry that cannot be asked now is gone without, and `note` is
        told, where the image is known from an earlier build.

        Raises `MachineError` if the registry does not answer, `BuildError` if a tag has moved.
        """
        recorded = cls.recorded(plan, folder)
        if recorded.base is None or recorded.base.reference.digest:
            return recorded
        try:
            asked = replace(recorded, digest=registry.digest(recorded.base.reference))
        except registry.RegistryError as error:
            if not (recorded.digest and isinstance(error, registry.RegistryUnreachableError)):
                raise _no_answer(recorded.base, error) from None
            note(f"{recorded.base.reference} is taken as it was, {recorded.digest}: {error}")
            return recorded
        for used in asked.used:
            first_use.refuse_if_changed(asked.record, used, folder)
        return asked

    @classmethod
    def recorded(cls, plan: Plan, folder: Path) -> Inputs:
        """Return the inputs of the last build, without asking; `BuildError` as in `base_image_of`.

        The last build into this folder, else of this first step anywhere.
        """
        record, base = first_use.read(folder), base_image.base_image_of(plan)
        inputs = cls(record=record, base=base, local=base_image.local_name(plan))
        if base is None:
            return inputs
        digest = base.reference.digest or record.get(inputs.used[0].key) or _cached_digest(plan)
        return replace(inputs, digest=digest)

    @property
    def header(self) -> Mapping[str, str]:
        """Return the base image by its digest: so it cannot change after the check."""
        if image_name.split(self.local)[0] == image_name.DAEMON:
            return {"From": base_image.digest_of_local(self.local)}
        return {"From": str(self.base.reference.at(self.digest))} if self.base else {}

    @property
    def environment(self) -> Mapping[str, str]:
        if image_name.split(self.local)[0] == image_name.DAEMON:
            return {"DOCKER_HOST": base_image.engine_address()}
        return self.base.environment if self.base else {}

    @property
    def used(self) -> list[SourceDigest]:
        if self.base is None:
            return []
        ref = str(registry.parse(self.base.name))
        return [SourceDigest(layer=self.base.layer, source="From", ref=ref, digest=self.digest)]


def _no_answer(base: BaseImage, error: registry.RegistryError) -> MachineError:
    where = f"layer '{base.layer}', {base.reference}"
    return MachineError.of(str(error), where=where, fix=error.fix)


def _cached_digest(plan: Plan) -> str:
    """Return the base image of the first step's last used result; empty if there is none."""
    entries = Store(root=cache_folder.root()).entries()
    same = (entry.manifest for entry in entries if entry.manifest.get("step") == plan.steps[0].id)
    return next((str(manifest["inputs"]["base image"]) for manifest in same), "")
