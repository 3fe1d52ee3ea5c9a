"""Download what later steps install while earlier ones run, into the cache that their pip reads."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from importlib.metadata import version
from typing import TYPE_CHECKING

from packaging.version import Version

from sifwright import pipasking, runner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sifwright.model import Download, Plan, Step

__all__ = ["DOWNLOADS", "running"]

# Where pip keeps what it downloads, in its cache, since 23.3 (its NEWS).
DOWNLOADS = "http-v2"
_FIRST = Version("23.3")


def running(plan: Plan, first: int, cache: Path, work: Path) -> AbstractContextManager[None]:
    """Download in the background, inside; whatever is not done by then is stopped.

    `first` is the number of the first step that runs: what it installs itself is not fetched, as
    it would be at the same time. What cannot be had is no error here: the step will say so.
    """
    if not _shares_cache():
        return nullcontext()
    lines = [_line(plan, step, item, cache, work) for step, item in _wanted(plan, first + 1)]
    if not lines:
        return nullcontext()
    command = ["/bin/sh", "-c", "; ".join(lines)]
    return runner.background(command, env=pipasking.environment(), log=work / "prefetch.log")


def _shares_cache() -> bool:
    """Whether this machine's pip keeps downloads where those of images look for them."""
    return Version(version("pip")) >= _FIRST


def _wanted(plan: Plan, first: int) -> Iterator[tuple[Step, Download]]:
    for step in plan.steps[first:]:
        for item in step.layer.downloads:
            if item.pip and pipasking.requirement(step, item):
                yield step, item


def _line(plan: Plan, step: Step, item: Download, cache: Path, work: Path) -> str:
    """As the layers do: by the machine's own settings, else from the layer's index."""
    words = ("download", "--cache-dir", str(cache), "--dest", str(work / "wheels"))
    wanted = [pipasking.requirement(step, item)]
    indexes = ("", *filter(None, [pipasking.index(step, item)]))
    return " || ".join(
        shlex.join(pipasking.command(plan, words, index, wanted)) for index in indexes
    )
