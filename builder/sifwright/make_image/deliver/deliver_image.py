"""Write what a site's engine takes, from a SIF: a squashfs file, an OCI archive, or an EDF file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sifwright.images.sif import sif_file
from sifwright.images.sif.format import architecture_of
from sifwright.make_image.deliver import oci_archive
from sifwright.make_image.deliver.flatten_sif import flatten_sif
from sifwright.system import files
from sifwright.system.free_space import require_free_space
from sifwright.system.tempdirs import temporary_root, workspace

SUFFIXES = {"squashfs": ".sqsh", "oci": ".oci.tar", "edf": ".toml"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """A file for an engine: its form (a key of `SUFFIXES`), path, and the OCI image's name."""

    form: str
    path: Path
    name: str


def deliver(sif: Path, delivery: Delivery) -> None:
    """Write the file, whole or not at all; one that is there is replaced.

    Raises `UsageError` for what is no SIF, `MachineError` without room or sqfs2tar.
    """
    if delivery.form == "oci":
        oci_archive.require_program()
    image = sif_file.read(sif)
    size = sum(part.size for part in sif_file.partitions(sif))
    needed = size * (2 if delivery.form == "squashfs" else 4)
    fix = "Free some, or choose another folder."
    require_free_space(delivery.path.parent, needed, "for the delivered image", fix)
    with workspace(delivery.path.parent) as staging:
        finished = staging / delivery.path.name
        squashfs = finished if delivery.form == "squashfs" else staging / "image.sqsh"
        _write_squashfs(sif, squashfs)
        if delivery.form == "oci":
            architecture = architecture_of(image.header.arch) or "unknown"
            oci_archive.write(squashfs, finished, name=delivery.name, architecture=architecture)
        files.publish(finished, delivery.path)


def _write_squashfs(sif: Path, target: Path) -> None:
    """Copy the partition of a flat SIF; of a layered one, that of the flattened SIF."""
    parts = sif_file.partitions(sif)
    if len(parts) == 1:
        sif_file.extract(sif, parts[0], target)
        return
    with workspace(temporary_root()) as scratch:
        flat = scratch / "flat.sif"
        flatten_sif(sif, flat, "")
        sif_file.extract(flat, sif_file.partitions(flat)[0], target)
