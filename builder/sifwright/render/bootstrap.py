"""The header of a definition file as layer and options give it, before any machine is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.catalog import image_name

if TYPE_CHECKING:
    from sifwright.catalog.model import Bootstrap
    from sifwright.plan.model import Step

__all__ = ["header", "text"]


def header(base: Step) -> dict[str, str]:
    """The header's lines as layer and options give them; empty where the machine must."""
    return {line.keyword: text(base, line) for line in base.layer.bootstrap}


def text(base: Step, line: Bootstrap) -> str:
    """A line of the header as layer and options give it."""
    if line.literal or not line.option:
        return line.literal or ""
    value = base.options[line.option].text
    kind, name = image_name.split(value) if line.image_part else ("", "")
    return {"kind": kind, "name": name}.get(line.image_part, value)
