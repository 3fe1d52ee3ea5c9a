"""Tell a person, or a program, how far a build is: one line per step."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Self

from sifwright.system.terminal import print_line_flushed, strip_control_characters

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status


class Progress:
    """Reporter of a build's steps; `seconds` is wall time."""

    def started(self, step: str) -> None: ...
    def finished(self, step: str, state: str, seconds: float) -> None: ...
    def output(self, line: str) -> None: ...
    def note(self, text: str) -> None: ...


class QuietProgress(Progress):
    """Progress without output; errors still reach stderr."""


class JsonProgress(Progress):
    """One JSON object per line on stdout."""

    def started(self, step: str) -> None:
        self._emit(event="started", step=step)

    def finished(self, step: str, state: str, seconds: float) -> None:
        self._emit(event="finished", step=step, state=state, seconds=round(seconds, 3))

    def note(self, text: str) -> None:
        self._emit(event="note", text=text)

    def _emit(self, **fields: object) -> None:
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()


def _plain(step: str) -> str:
    """Return a step's name without markup and control characters, which a file may have given."""
    from rich.markup import escape  # noqa: PLC0415  # loads slowly

    return escape(strip_control_characters(step))


class TextProgress(Progress):
    """Lines for a person; on a terminal the running step is shown with its time."""

    def __init__(self, console: Callable[[], Console], *, verbose: bool = False) -> None:
        self._make_console = console
        self.verbose = verbose
        self._status: Status | None = None

    @cached_property
    def console(self) -> Console:
        """Return the console, made at the first step: a build with nothing to do needs no rich."""
        return self._make_console()

    def started(self, step: str) -> None:
        if self.console.is_terminal:
            self._status = self.console.status(f"{_plain(step)} …")
            self._status.start()

    def finished(self, step: str, state: str, seconds: float) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
        style = {"done": "green", "failed": "bold red"}.get(state, "yellow")
        shown = _plain(f"{step:<24}")
        self.console.print(f"{shown} [{style}]{state:<8}[/] {seconds:7.1f} s", highlight=False)

    def output(self, line: str) -> None:
        if self.verbose:
            self.console.print(f"  | {line}", markup=False, highlight=False)

    def note(self, text: str) -> None:
        if self._status is None:
            print_line_flushed(text)
        else:
            # Above the line that is being drawn.
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)


@dataclass
class Timer:
    """The one step that is running; starting the next one finishes it, an error fails it.

    `timeline` has all that are finished: when they began and how long they took, in seconds, and
    their state.
    """

    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)
    timeline: list[dict[str, object]] = field(default_factory=list)
    step: str = ""
    _origin: float = field(default_factory=time.monotonic)
    _since: float = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        stopped = kind is not None and issubclass(kind, KeyboardInterrupt)
        self.finish("stopped" if stopped else "failed" if kind else "done")

    def start(self, step: str) -> None:
        if step == self.step:
            return
        self.finish("done")
        self.step, self._since = step, time.monotonic()
        self.progress.started(step)

    def finish(self, state: str) -> None:
        if not self.step:
            return
        elapsed = time.monotonic() - self._since
        self.seconds[self.step] = round(elapsed, 3)
        start, seconds = round(self._since - self._origin, 3), round(elapsed, 3)
        self.timeline.append(
            {"step": self.step, "state": state, "start": start, "seconds": seconds}
        )
        self.progress.finished(self.step, state, elapsed)
        self.step = ""
