"""Layers that the tests of sifwright build for real, by the headers of the layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.catalog.model import Layer
    from sifwright.plan.model import Plan

__all__ = ["never", "word"]


def word(layer: Layer) -> str:
    """Return the make target that builds the layer, never, or - where its header does not say."""
    if layer.built is None:
        return "-"
    return next((how.removeprefix("make ") for how in sorted(layer.built)), "never")


def never(plan: Plan) -> Iterator[str]:
    """Yield the layers of a plan that no test builds."""
    return (step.layer.name for step in plan.steps if step.layer.built == {})
