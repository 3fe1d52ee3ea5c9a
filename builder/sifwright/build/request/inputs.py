"""The inputs of a build beside its plan: the base image as it is now, and first uses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sifwright.build.cache.store import Store
from sifwright.build.request import first_use
from sifwright.build.request.first_use import SourceDigest
from sifwright.catalog import image_name
from sifwright.errors import MachineError
from sifwright.host.network import registry
from sifwright.system import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from sifwright.build.request.base_image import BaseImage
    from sifwright.plan.model import Step


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """`record` is what was used by earlier builds into `folder`; `digest` is the base image's."""

    base: BaseImage
    folder: Path
    record: dict[str, str]
    digest: str

    @classmethod
    def recorded(cls, base: BaseImage, folder: Path) -> Inputs:
        """Return the inputs of the last build, without asking a registry.

        The last build into this folder, else of this first step anywhere.
        """
        record, digest = first_use.read(folder), base.local_digest()
        inputs = cls(base=base, folder=folder, record=record, digest=digest)
        if base.reference is None:
            return inputs
        known = base.reference.digest or record.get(inputs.used[0].key)
        return replace(inputs, digest=known or _cached_digest(base.step))

    def asked(self, note: Callable[[str], None]) -> Inputs:
        """Ask the registry, and compare with what was used before.

        A digest needs no asking. A registry that cannot be asked now is gone without, and `note` is
        told, where the image is known from an earlier build.

        Raises `MachineError` if the registry does not answer, `BuildError` if a tag has moved.
        """
        reference = self.base.reference
        if reference is None or reference.digest:
            return self
        try:
            inputs = replace(self, digest=registry.digest(reference))
        except registry.RegistryError as error:
            if not (self.digest and isinstance(error, registry.RegistryUnreachableError)):
                where = f"layer '{self.base.layer}', {reference}"
                raise MachineError.of(str(error), where=where, fix=error.fix) from None
            note(f"{reference} is taken as it was, {self.digest}: {error}")
            return self
        for used in inputs.used:
            first_use.refuse_if_changed(self.record, used, self.folder)
        return inputs

    @property
    def header(self) -> Mapping[str, str]:
        """Return the base image by its digest: so it cannot change after the check."""
        if self.base.reference:
            return {"From": str(self.base.reference.at(self.digest))}
        return {"From": self.digest} if self.base.kind == image_name.DAEMON else {}

    @property
    def used(self) -> list[SourceDigest]:
        if self.base.reference is None:
            return []
        ref = str(registry.parse(self.base.name))
        return [SourceDigest(layer=self.base.layer, source="From", ref=ref, digest=self.digest)]


def _cached_digest(first: Step) -> str:
    """Return the base image of this step's last used result; empty if there is none."""
    entries = Store(root=cache_folder.root()).entries()
    same = (entry.manifest for entry in entries if entry.manifest.get("step") == first.id)
    return next((str(manifest["inputs"]["base image"]) for manifest in same), "")
