"""A SIF of this machine that an image starts from: what the engine would leave out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright import baseimage
from sifwright.errors import MachineError, Problem
from sifwright.sif import image

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.model import Plan

__all__ = ["problems", "refuse"]


def problems(plan: Plan) -> Iterator[Problem]:
    """Yield that the base has overlays: the engine takes the first partition (tried on 1.4.5).

    It says nothing of the others and ends with 0. What is no SIF, it refuses itself.
    """
    path = baseimage.local_path(plan)
    if path is None:
        return
    try:
        found = image.read(path)
    except image.SifError:
        return
    if count := _overlays(found):
        name = plan.steps[0].layer.name
        yield Problem(
            where=str(path),
            what=f"layer '{name}' starts from it, and would take the first of its"
            f" {count + 1} partitions only",
            fix=f"sifwright flatten {path} NEW.sif, and start from NEW.sif"
            " (or build it with --layout flat).",
        )


def refuse(plan: Plan) -> None:
    """Raise `MachineError` for such a base."""
    if found := list(problems(plan)):
        raise MachineError(*found)


def _overlays(found: image.Image) -> int:
    others = (one for one in found.descriptors if one.is_overlay and not one.is_squashfs)
    return len(found.partitions[1:]) + sum(1 for _ in others)
