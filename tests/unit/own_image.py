"""The real catalog with one image more, for combinations that no image of ours has."""

from dataclasses import replace

import pytest

from sifwright.catalog.model import Catalog, Image, ImageSlot
from sifwright.errors import PlanError
from sifwright.plan.model import Plan
from sifwright.plan.resolve import resolve


def with_image(real: Catalog, *layers: str) -> Catalog:
    """Add the image `mine`, of these layers in this order; `a|b` is the first that suits."""
    entries = tuple(ImageSlot(choices=tuple(name.split("|")), options={}) for name in layers)
    image = Image(name="mine", description="One for a test", layers=entries)
    return replace(real, images={**real.images, "mine": image})


def plan(real: Catalog, site: str, layers: tuple[str, ...], *settings: str) -> Plan:
    return resolve(with_image(real, *layers), site, "mine", settings)


def refused(real: Catalog, site: str, layers: tuple[str, ...], *settings: str) -> str:
    return refusal(with_image(real, *layers), site, "mine", *settings)


def refusal(catalog: Catalog, site: str, image: str, *settings: str) -> str:
    """Return every word of the refusal, the advice included."""
    with pytest.raises(PlanError) as caught:
        resolve(catalog, site, image, settings)
    return "\n".join(f"{x.where}: {x.what} | {x.fix}" for x in caught.value.problems)
