"""A wheel and the page of an index that leads to it."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def add_wheel(folder: Path) -> str:
    """Put toy 1.0 into an index's folder; returns the wheel's name."""
    folder.mkdir(parents=True)
    name = "toy-1.0-py3-none-any.whl"
    info = "toy-1.0.dist-info"
    with zipfile.ZipFile(folder / name, "w") as wheel:
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    (folder / "index.html").write_text(f'<a href="{name}">{name}</a>')
    return name
