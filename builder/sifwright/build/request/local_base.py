"""What of this machine an image starts from: which one it is, and what the engine leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.build.request import engine_image_id
from sifwright.catalog import image_name
from sifwright.errors import MachineError, Problem
from sifwright.system import file_digests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.images.sif.sif_file import SifImage

__all__ = ["digest", "file", "problems", "refuse"]


def file(name: str) -> Path | None:
    """The file of that name that says which image it is, if it is there.

    `name` is the path of a SIF, else it has the kind before it: see `imagename`.
    """
    kind, place = image_name.split(name)
    path = Path(name if kind == image_name.REGISTRY else place)
    # It names all else in the folder by digests, which are compared while that is read.
    path = path / "index.json" if kind == "oci" else path
    return path if name and path.is_file() else None


def digest(name: str, *, from_disk: bool = False) -> str:
    """Its sha256, or the id that Docker Engine gives it; empty if there is no such thing.

    `from_disk`: of its bytes as they are now, whatever is remembered.
    """
    kind, place = image_name.split(name)
    if kind == image_name.DAEMON:
        return engine_image_id.image_id(place)
    path = file(name)
    if path is None:
        return ""
    return file_digests.read(path) if from_disk else file_digests.sha256(path)


def problems(name: str, layer: str) -> Iterator[Problem]:
    """Yield that the base has overlays: the engine takes the first partition (tried on 1.4.5).

    It says nothing of the others and ends with 0. What is no SIF, it refuses itself.
    """
    path = file(name)
    if path is None:
        return
    from sifwright.images.sif import sif_file  # noqa: PLC0415  # most images start from no file

    try:
        found = sif_file.read(path)
    except sif_file.SifError:
        return
    if count := _overlays(found):
        yield Problem(
            where=str(path),
            what=f"layer '{layer}' starts from it, and would take the first of its"
            f" {count + 1} partitions only",
            fix=f"sifwright flatten {path} NEW.sif, and start from NEW.sif"
            " (or build it with --layout flat).",
        )


def refuse(name: str, layer: str) -> None:
    """Raise `MachineError` for such a base."""
    if found := list(problems(name, layer)):
        raise MachineError(*found)


def _overlays(found: SifImage) -> int:
    others = (one for one in found.descriptors if one.is_overlay and not one.is_squashfs)
    return len(found.partitions[1:]) + sum(1 for _ in others)
