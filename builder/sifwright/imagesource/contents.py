"""What every source of images gives: an image that was found, and what is in it once it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from sifwright.imagesource.model import Config
    from sifwright.inspection.kept import Tree
    from sifwright.progress import Timer

__all__ = ["Contents", "Found"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """An image that was read; `digest` and `bytes` as in `ImageFacts`."""

    digest: str
    config: Config
    tree: Tree
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """An image that is there. What has the same `key` is the same image for ever."""

    key: str
    read: Callable[[Timer], Contents]
