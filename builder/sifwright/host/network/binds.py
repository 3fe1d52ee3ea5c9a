"""Folders of the building machine that a build sees below /mnt, which every base has."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Binds"]


@dataclass(kw_only=True)
class Binds:
    """`mounts` stands for /mnt in the image; each folder gets a numbered one in it."""

    mounts: Path
    words: list[str] = field(default_factory=list)
    _places: dict[Path, Path] = field(default_factory=dict)

    def bound(self, folder: Path) -> Path:
        """Bind a folder, once, and say where the build finds it."""
        if folder not in self._places:
            target = Path("/mnt", str(len(self._places)))
            (self.mounts / target.name).mkdir(parents=True)
            self.words.append(f"{folder}:{target}:ro")
            self._places[folder] = target
        return self._places[folder]

    def all(self) -> tuple[str, ...]:
        """What to give the engine; nothing is hidden below /mnt without need."""
        return (f"{self.mounts}:/mnt", *self.words) if self.words else ()
