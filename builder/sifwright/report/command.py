"""The command `report`: write the page about an image that was built."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import files
from sifwright.errors import MachineError
from sifwright.report.facts import gather
from sifwright.report.page import render

if TYPE_CHECKING:
    from sifwright.output import Output

__all__ = ["NAME", "write"]

NAME = "report.html"


def write(output: Output, page: str) -> Path:
    """Write the page of the image in this folder, there or where `page` says; returns where.

    Raises `UsageError` if the image cannot be read, `MachineError` if there is no writing.
    """
    target = Path(page) if page else output.folder / NAME
    text = render(gather(output))
    if target.is_dir() or not target.parent.is_dir():
        what = "is a folder" if target.is_dir() else "is in a folder that is not there"
        raise MachineError.of(what, where=str(target), fix="Name a file with --output.")
    files.write(target, text.encode("utf-8", "backslashreplace"), mode=0o644)
    return target
