"""What a build command decides before it looks at the machine.

It is all that the command needs where the image is up to date already; see recall.py. Nothing here
takes long to load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.build.request import local_base

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["BuildRequest"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildRequest:
    """One image at one site, and what the record of it has to say.

    `plan` is the id. `base` is the file that `base_layer` starts from, as that names it; empty if
    it starts from none. `wanted` lacks the digest of that file. `notes` are to be said. `program`
    is a command to try the image with.
    """

    site: str
    image: str
    plan: str
    wanted: Mapping[str, str]
    base: str
    base_layer: str
    notes: Sequence[str]
    program: str

    def facts(self) -> dict[str, str]:
        """What the record has to say now; see `Output.is_current`."""
        return {**self.wanted, "base_sha256": local_base.digest(self.base)}
