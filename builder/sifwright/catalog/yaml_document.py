"""The data of a YAML file, with the line of every value."""

from dataclasses import dataclass
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """Plain data, and for each path in it the line (from 1) and the text as written."""

    data: Any
    lines: dict[Path, int]
    texts: dict[Path, str]

    def line(self, path: Path) -> int:
        """Return the line of a path, or of the nearest one above that is there."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)
