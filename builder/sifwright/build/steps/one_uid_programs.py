"""Programs that take the place of the machine's where a build has one uid and gid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.render import build_files
from sifwright.system import ids, processes

if TYPE_CHECKING:
    from pathlib import Path

_NAME = "debootstrap"


def search_path(folder: Path) -> str:
    """Return the PATH of an engine that builds; `folder` gets the programs of ours on it."""
    if not ids.are_one():
        return processes.search_path()
    program = folder / "bin" / _NAME
    program.parent.mkdir(exist_ok=True)
    program.write_text(build_files.package_text(f"build/steps/templates/one_uid/{_NAME}"))
    program.chmod(0o755)
    return f"{program.parent}:{processes.search_path()}"
