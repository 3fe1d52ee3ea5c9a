"""What is asked of a build, and what a record says of an image that already is that.

Nothing here takes long to load: most builds have nothing to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sifwright import baseimage
from sifwright.render.definition import digest

if TYPE_CHECKING:
    from sifwright.model import Plan
    from sifwright.task import Layout

__all__ = ["Wishes", "facts"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """How to build: `layout` of the SIF, `force` even if it is there, with or without the cache.

    `tests`: those of all layers, or those that have not passed as they are now. `before` names the
    layer to stop before, without an image.
    """

    layout: Layout
    before: str = ""
    tests: Literal["all", "changed"] = "all"
    force: bool = False
    cached: bool = True


def facts(plan: Plan, wishes: Wishes) -> dict[str, str]:
    """What the record of the image has to say; see `Output.is_current`."""
    return {
        "definition_sha256": digest(plan),
        "site_compression": plan.site.compression,
        "layout": wishes.layout,
        "base_sha256": baseimage.local_digest(plan),
        **({"tested": "all"} if wishes.tests == "all" else {}),
    }
