"""What the administrator of an engine has allowed, as apptainer.conf says it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sifwright.system import processes

if TYPE_CHECKING:
    from sifwright.host.engines.apptainer import Apptainer

__all__ = ["allows_overlays"]


def allows_overlays(engine: Apptainer) -> bool:
    """Whether squashfs files can be stacked; also if it does not say.

    Without (tried on 1.4.5) `exec --overlay` refuses, and a layered SIF starts with nothing but its
    first partition, without a word.
    """
    return _get(engine.program, "enable overlay") != "no"


@cache
def _get(program: str, name: str) -> str:
    """A setting (apptainer.conf is where the engine was installed to, so it is asked)."""
    return processes.capture([program, "config", "global", "--get", name]).stdout.strip()
