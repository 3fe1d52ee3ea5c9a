"""Read a SIF's own metadata back, through spython; nothing else here knows spython."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sifwright.errors import MachineError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["labels"]


def labels(sif: Path) -> dict[str, str]:
    """The labels of a SIF.

    spython answers an unreadable image with a message in place of the data, so what comes back is
    checked. It needs the engine on PATH.
    """
    from spython.main import get_client  # noqa: PLC0415  # imports its command groups: slow

    client = get_client(quiet=True)
    if not client.check_install():
        raise MachineError.of("'inspect' needs apptainer or singularity", fix="Install one.")
    answer = client.inspect(str(sif), json=True, quiet=True)
    try:
        found = json.loads(answer) if isinstance(answer, str) else answer
        return dict(found["attributes"]["labels"] or found["data"]["attributes"]["labels"])
    except (ValueError, KeyError, TypeError):
        raise UsageError.of(
            "not an image that can be read", where=str(sif), fix="Name a SIF file."
        ) from None
