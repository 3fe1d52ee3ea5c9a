"""The real catalog with one image more, for combinations that no image of ours has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sifwright.catalog.model import Image, ImageSlot

if TYPE_CHECKING:
    from sifwright.catalog.model import Catalog

__all__ = ["with_image"]


def with_image(real: Catalog, *layers: str) -> Catalog:
    """Add the image `mine`, of these layers in this order."""
    entries = tuple(ImageSlot(choices=(name,), options={}) for name in layers)
    image = Image(name="mine", description="One for a test", layers=entries)
    return replace(real, images={**real.images, "mine": image})
