"""What a build starts from beside its plan: the base image as it is now, and earlier first uses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sifwright import baseimage, firstuse, registry
from sifwright.errors import MachineError
from sifwright.firstuse import Used

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sifwright.baseimage import BaseImage
    from sifwright.model import Plan

__all__ = ["Inputs"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """`record` is what was used by earlier builds; `digest` says which base image it is now."""

    record: dict[str, str]
    base: BaseImage | None = None
    digest: str = ""

    @classmethod
    def of(cls, plan: Plan, folder: Path) -> Inputs:
        """Ask the registry, and compare with what was used before.

        Raises `MachineError` if the registry does not answer, `BuildError` if a tag has moved.
        """
        record, base = firstuse.read(folder), baseimage.of(plan)
        if base is None:
            return cls(record=record)
        try:
            inputs = cls(record=record, base=base, digest=registry.digest(base.reference))
        except registry.RegistryError as error:
            raise MachineError.of(str(error), where=str(base.reference)) from None
        for used in inputs.used:
            firstuse.expect(record, used, folder)
        return inputs

    @classmethod
    def recorded(cls, plan: Plan, folder: Path) -> Inputs:
        """As they were for the last build, without asking; raises `BuildError` as `of` does."""
        record, base = firstuse.read(folder), baseimage.of(plan)
        found = cls(record=record, base=base)
        return replace(found, digest=record.get(found.used[0].key, "")) if base else found

    @property
    def header(self) -> Mapping[str, str]:
        """What is checked is what is built: by its digest a base image cannot change in between."""
        return {"From": str(self.base.reference.at(self.digest))} if self.base else {}

    @property
    def environment(self) -> Mapping[str, str]:
        return self.base.environment if self.base else {}

    @property
    def used(self) -> list[Used]:
        if self.base is None:
            return []
        ref = str(registry.parse(self.base.name))
        return [Used(layer=self.base.layer, source="From", ref=ref, digest=self.digest)]
