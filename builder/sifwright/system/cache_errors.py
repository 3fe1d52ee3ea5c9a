"""What goes wrong with the folder of the cache, as errors a user can do something about."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sifwright.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["FIX", "translate_errors"]

FIX = "Free space, mend the permission, or choose another folder with SIFWRIGHT_CACHE."


@contextmanager
def translate_errors(root: Path) -> Iterator[None]:
    """Turn an error of the operating system into a `MachineError` that names the cache."""
    try:
        yield
    except OSError as error:
        what = f"the step cache cannot be used: {error.strerror or error}"
        raise MachineError.of(what, where=str(error.filename or root), fix=FIX) from error
