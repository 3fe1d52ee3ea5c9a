"""What every source of images gives: an image that was found, and what is in it once it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from sifwright.images.contents.image_tree import ImageTree
    from sifwright.images.sources.model import Config
    from sifwright.system.progress import Timer

__all__ = ["FoundImage", "ImageContents"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageContents:
    """An image that was read; `digest` and `bytes` as in `ImageFacts`."""

    digest: str
    config: Config
    tree: ImageTree
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundImage:
    """An image that is there. What has the same `key` is the same image for ever."""

    key: str
    read: Callable[[Timer], ImageContents]
