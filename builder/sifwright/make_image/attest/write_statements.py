"""Write an image's statements, into the SIF and beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.images.contents.inventory import inventory
from sifwright.images.sif import sif_file
from sifwright.images.sif.format import DataType
from sifwright.images.sif.write_sif import SifObject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sifwright.images.contents.image_tree import ImageTree
    from sifwright.images.sif.sif_file import SifImage
    from sifwright.make_image.resolve_request.build_context import BuildContext
    from sifwright.plan.source_digest import SourceDigest

SBOM, PROVENANCE = "sbom.cdx.json", "provenance.json"
FILES = (SBOM, PROVENANCE)
# CycloneDX as JSON (pkg/sif/sbom.go of github.com/apptainer/sif).
_CYCLONEDX_JSON = (1).to_bytes(4, "little")


@dataclass(frozen=True, kw_only=True)
class Statements:
    """The statements about one image by file; there is no SBOM where packages cannot be read."""

    context: BuildContext
    used: Sequence[SourceDigest]
    written: dict[str, bytes]

    @classmethod
    def of(
        cls, context: BuildContext, used: Sequence[SourceDigest], tree: ImageTree | None
    ) -> Statements:
        from sifwright.make_image.attest.sbom import sbom  # noqa: PLC0415  # 0.3 s, for new images only

        epoch = context.options.epoch
        bill = {SBOM: sbom(context.plan, inventory(tree), used, epoch)} if tree else {}
        return cls(context=context, used=used, written=bill)

    def objects(self, names: Sequence[str]) -> list[SifObject]:
        """Return the objects of a SIF with partitions of these names."""
        statement = SifObject(
            data_type=DataType.GENERIC_JSON,
            name=PROVENANCE,
            data=lambda digests: self.provenance(dict(zip(names, digests, strict=True))),
        )
        return [*_bill(self.written.get(SBOM, b"")), statement]

    def provenance(self, subjects: Mapping[str, str]) -> bytes:
        from sifwright.make_image.attest.provenance import provenance  # noqa: PLC0415  # as above

        self.written[PROVENANCE] = provenance(self.context.plan, self.used, subjects)
        return self.written[PROVENANCE]

    def write(self, folder: Path) -> None:
        """Write the files that are published beside the image."""
        for name, data in self.written.items():
            (folder / name).write_bytes(data)


def carried(image: SifImage) -> list[SifObject]:
    """Return the SBOM of a SIF for one with the same tree; its provenance is of other bytes."""
    return _bill(sif_file.data_of(image, SBOM))


def _bill(sbom: bytes) -> list[SifObject]:
    if not sbom:
        return []
    return [
        SifObject(data_type=DataType.SBOM, name=SBOM, extra=_CYCLONEDX_JSON, data=lambda _: sbom)
    ]
