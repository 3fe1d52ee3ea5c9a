"""What a build starts from beside its plan: the base image as it is now, and earlier first uses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sifwright import baseimage, daemon, firstuse, imagename, localbase, registry
from sifwright.errors import MachineError
from sifwright.firstuse import Used
from sifwright.store import location
from sifwright.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from sifwright.baseimage import BaseImage
    from sifwright.model import Plan

__all__ = ["Inputs"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """`record` is what was used by earlier builds; `digest` says which base image it is now.

    `local` is what of this machine the plan starts from, if it does: `baseimage.local_name`.
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
        found = cls.recorded(plan, folder)
        if found.base is None or found.base.reference.digest:
            return found
        try:
            asked = replace(found, digest=registry.digest(found.base.reference))
        except registry.RegistryError as error:
            if not (found.digest and isinstance(error, registry.Unreachable)):
                raise _no_answer(found.base, error) from None
            note(f"{found.base.reference} is taken as it was, {found.digest}: {error}")
            return found
        for used in asked.used:
            firstuse.expect(asked.record, used, folder)
        return asked

    @classmethod
    def recorded(cls, plan: Plan, folder: Path) -> Inputs:
        """As they were for the last build, without asking; raises `BuildError` as `of` does.

        The last build into this folder, else of this first step anywhere.
        """
        record, base = firstuse.read(folder), baseimage.of(plan)
        found = cls(record=record, base=base, local=baseimage.local_name(plan))
        if base is None:
            return found
        known = base.reference.digest or record.get(found.used[0].key) or _cached_digest(plan)
        return replace(found, digest=known)

    @property
    def header(self) -> Mapping[str, str]:
        """What is checked is what is built: by its digest a base image cannot change in between."""
        if imagename.split(self.local)[0] == imagename.DAEMON:
            return {"From": localbase.digest(self.local)}
        return {"From": str(self.base.reference.at(self.digest))} if self.base else {}

    @property
    def environment(self) -> Mapping[str, str]:
        if imagename.split(self.local)[0] == imagename.DAEMON:
            return {"DOCKER_HOST": daemon.address()}
        return self.base.environment if self.base else {}

    @property
    def used(self) -> list[Used]:
        if self.base is None:
            return []
        ref = str(registry.parse(self.base.name))
        return [Used(layer=self.base.layer, source="From", ref=ref, digest=self.digest)]


def _no_answer(base: BaseImage, error: registry.RegistryError) -> MachineError:
    where = f"layer '{base.layer}', {base.reference}"
    return MachineError.of(str(error), where=where, fix=error.fix)


def _cached_digest(plan: Plan) -> str:
    """The base image of the first step's result that was used last; empty if there is none."""
    entries = Store(root=location.root()).entries()
    same = (one.manifest for one in entries if one.manifest.get("step") == plan.steps[0].id)
    return next((str(manifest["inputs"]["base image"]) for manifest in same), "")
