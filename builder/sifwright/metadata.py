"""Read a SIF's own metadata back, through spython; nothing else here knows spython."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sifwright.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["labels"]


def labels(sif: Path) -> dict[str, str]:
    """Return the labels of a SIF; the caller has made sure that an engine is on PATH.

    spython answers an image that cannot be read with the engine's message in place of the data,
    so the shape of the answer is checked.
    """
    from spython.main import get_client  # noqa: PLC0415  # imports all its command groups: slow

    answer: Any = get_client(quiet=True).inspect(str(sif), json=True, quiet=True)
    try:
        return dict(answer["attributes"]["labels"])
    except (KeyError, TypeError, ValueError):
        fix = "Name the file of an image, as 'sifwright build' printed it."
        raise UsageError.of("not an image that can be read", where=str(sif), fix=fix) from None
