"""The recorded inputs of a build: the digest of the base image's tag, and first uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.catalog import image_name
from sifwright.errors import BuildError, MachineError
from sifwright.host.network import registry
from sifwright.make_image.resolve_request import first_use
from sifwright.make_image.resolve_request.base_image import BaseImage
from sifwright.make_image.resolve_request.epoch import source_epoch
from sifwright.plan.source_digest import SourceDigest
from sifwright.render.definition import AS_PLANNED
from sifwright.system import cache_folder, files

if TYPE_CHECKING:
    from sifwright.make_image.lock_format.lock_file import Lock


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """`record` is what was used by earlier builds into `folder`; `digest` is the base image's.

    `lock` is the digest of the lock, if there is one; `layout` has the base image then.
    `epoch` is that of `BuildOptions`.
    """

    base: BaseImage
    folder: Path
    record: dict[str, str]
    digest: str
    lock: str = ""
    layout: Path | None = None
    epoch: int = field(default_factory=source_epoch)

    @classmethod
    def recorded(cls, base: BaseImage, folder: Path) -> Inputs:
        """Return the inputs of the last build, without asking a registry.

        The last build into this folder, else of this first step anywhere.
        """
        from sifwright.make_image.cache.store import Store  # noqa: PLC0415  # not for up to date

        record, digest = first_use.read_first_use(folder), base.local_digest()
        inputs = cls(base=base, folder=folder, record=record, digest=digest)
        if base.reference is None:
            return inputs
        if known := base.reference.digest or record.get(inputs.used[0].key, ""):
            return replace(inputs, digest=known)
        entries = Store(root=cache_folder.root()).entries()
        same = (entry for entry in entries if entry.manifest.get("step") == base.step.id)
        last = next(same, None)
        return replace(inputs, digest=str(last.manifest["inputs"]["base image"]) if last else "")

    def locked(self, lock: Lock, files: Path) -> Inputs:
        """Return the inputs that a lock names, with their files in a folder."""
        return replace(
            self,
            record={f"{item.layer} {item.name} {item.ref}": item.digest for item in lock.sources},
            digest=lock.base.get("digest", ""),
            lock=lock.digest,
            layout=files / "image",
        )

    def without_base(self) -> Inputs:
        """Return the inputs without what earlier builds knew of the base image of a registry."""
        if self.base.reference is None or self.base.reference.digest:
            return self
        keys = {used.key for used in self.used}
        record = {key: digest for key, digest in self.record.items() if key not in keys}
        return replace(self, record=record, digest="")

    def remember_base(self) -> None:
        """Write what the base image is now into the record of the folder, if it has one."""
        path = self.folder / first_use.FILE
        if path.exists():
            files.write(path, first_use.text(self.record, self.used).encode(), mode=0o644)

    def with_current_digest(self, note: Callable[[str], None]) -> Inputs:
        """Ask the registry, and compare with what was used before.

        A digest needs no question. If the registry does not answer, the digest of an earlier build
        serves, and `note` reports that.

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
            self._refuse_if_changed(used)
        return inputs

    def _refuse_if_changed(self, used: SourceDigest) -> None:
        before = self.record.get(used.key, used.digest)
        if before != used.digest:
            raise BuildError.of(
                f"{used.ref} is not what it was when it was first used here\n"
                f"    expected: {before}\n    found:    {used.digest}",
                where=f"layer '{used.layer}'",
                fix=f"If the change is meant, remove the entry from {self.folder / first_use.FILE}."
                " Or lock the new digest: sifwright lock SITE IMAGE --update base."
                " Nothing was built.",
            )

    @property
    def header(self) -> Mapping[str, str]:
        """Return the base image by its digest: so it cannot change after the check."""
        if self.layout and self.base.kind == image_name.REGISTRY:
            return {"Bootstrap": "oci", "From": str(self.layout)}
        if self.base.reference:
            return {"From": str(self.base.reference.at(self.digest))}
        return {"From": self.digest} if self.base.kind == image_name.DAEMON else {}

    def published(self, header: Mapping[str, str]) -> Mapping[str, str]:
        """Return a header for the image: a lock says what its files are, and not where."""
        if not self.lock:
            return header
        if self.base.kind != image_name.REGISTRY:
            return AS_PLANNED
        return {"From": str(registry.parse(self.base.name).at(self.digest))}

    @property
    def used(self) -> list[SourceDigest]:
        if self.base.kind != image_name.REGISTRY or not self.base.name:
            return []
        ref = str(registry.parse(self.base.name))
        return [SourceDigest(layer=self.base.layer, source="From", ref=ref, digest=self.digest)]
