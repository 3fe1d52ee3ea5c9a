"""The header lines of a base layer, and the program that an image starts."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # the dataclasses' own field types
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["BaseInspection", "Bootstrap", "ImageStart"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bootstrap:
    """A header line of the definition file: a literal, or an option that the machine can fill.

    `image_part`: only this part of the option, which names an image; see `image_name`.
    """

    keyword: str
    literal: str | None = None
    option: str | None = None
    machine: str | None = None
    image_part: Literal["", "kind", "name"] = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageStart:
    """The program of an image: words of ENTRYPOINT and CMD in `workdir`, or a whole script."""

    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    workdir: str = ""
    script: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseInspection:
    """The option that names the base image, and the `table` with a row for that image.

    `must_match` are options that a user may state, if the row has the same value. `provides`: words
    that the layer provides only if the column of the row is not empty.
    """

    option: str
    table: str
    must_match: tuple[str, ...] = ()
    provides: Mapping[str, str] = field(default_factory=dict)
