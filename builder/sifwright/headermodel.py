"""What a base layer's header says of where it starts from."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # the dataclasses' own field types
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Bootstrap", "Inspects"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bootstrap:
    """A header line of the definition file: a literal, or an option that the machine can fill.

    `part`: only this part of the option, which names an image; see `imagename`.
    """

    keyword: str
    literal: str | None = None
    option: str | None = None
    machine: str | None = None
    part: Literal["", "kind", "name"] = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Inspects:
    """`option` names an image; what is known or found of it is a row of `table`.

    `holds` are options that a user may state and that are what the row says. `provides`: what the
    layer provides only if the column of the row is not empty.
    """

    option: str
    table: str
    holds: tuple[str, ...] = ()
    provides: Mapping[str, str] = field(default_factory=dict)
