"""The disk space that a build needs, and the modes of a build that it depends on."""

from dataclasses import dataclass
from typing import Literal

# Step by step with the cache or without one, or by the engine alone.
BuildMode = Literal["cached", "uncached", "engine"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskNeeds:
    """Bytes that a build will take at its peak, beside what is there already.

    `temporary_files` counts files and folders; there are few in the cache and at the output.
    """

    temporary: int
    cache: int
    output: int
    temporary_files: int = 0
