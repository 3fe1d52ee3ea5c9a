"""Write what a site's engine takes, from a SIF: a squashfs file, an OCI archive, or an EDF file."""

from __future__ import annotations

from pathlib import Path

from sifwright.images.sif import sif_file
from sifwright.images.sif.format import architecture_of
from sifwright.make_image.deliver import oci_archive
from sifwright.make_image.deliver.flatten_sif import flatten_sif
from sifwright.system import files
from sifwright.system.free_space import require_free_space
from sifwright.system.tempdirs import temporary_root, workspace

SUFFIXES = {"squashfs": ".sqsh", "oci": ".oci.tar", "edf": ".toml"}


def deliver(sif: Path, form: str, path: Path, name: str) -> None:
    """Write the file, whole or not at all; one that is there is replaced.

    `form` is a key of `SUFFIXES`, `name` is that of an OCI image.
    Raises `UsageError` for what is no SIF, `MachineError` without room or sqfs2tar.
    """
    if form == "oci":
        oci_archive.require_program()
    image = sif_file.read(sif)
    size = sum(part.size for part in sif_file.partitions(sif))
    needed = size * (2 if form == "squashfs" else 4)
    fix = "Free some, or choose another folder."
    require_free_space(path.parent, needed, "for the delivered image", fix)
    with workspace(path.parent) as staging:
        finished = staging / path.name
        squashfs = finished if form == "squashfs" else staging / "image.sqsh"
        _write_squashfs(sif, squashfs)
        if form == "oci":
            architecture = architecture_of(image.header.arch) or "unknown"
            oci_archive.write(squashfs, finished, name=name, architecture=architecture)
        files.publish(finished, path)


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
