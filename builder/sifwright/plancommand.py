"""The command `plan`: the steps of an image, and what a build of it would do here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright import forecast, prospect, room
from sifwright.render.document import plan_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rich.table import Table

    from sifwright.forecast import Outlook
    from sifwright.model import Plan
    from sifwright.room import Needs

__all__ = ["document", "lines", "summaries", "table"]


def table(found: Sequence[Outlook]) -> Table:
    """A line for each step."""
    from rich.table import Table  # noqa: PLC0415  # not needed for --json
    from rich.text import Text  # noqa: PLC0415

    shown = Table(box=None, pad_edge=False, header_style="")
    for head in ("layer", "on this machine", "seconds", "MB", "why"):
        shown.add_column(head, justify="right" if head in {"seconds", "MB"} else "left")
    for outlook in found:
        shown.add_row(*map(Text, (outlook.layer, *_cells(outlook))))
    return shown


def _cells(outlook: Outlook) -> Iterator[str]:
    yield "will run" if outlook.why else "cached"
    yield "" if outlook.seconds is None else f"{outlook.seconds:.1f}"
    yield "" if outlook.bytes is None else f"{outlook.bytes / 1e6:.1f}"
    yield outlook.why.text if outlook.why else ""


def document(plan: Plan, output: Path) -> dict[str, object]:
    """The plan, and what a build into this folder would do, as plain data: docs/building.md."""
    found = prospect.look(plan, output)
    needs = _needs(found).document()
    return {**plan_document(plan), "forecast": {**forecast.document(found), "needs": needs}}


def summaries(found: Sequence[Outlook], output: Path) -> Iterator[str]:
    """What will run, and the room that takes."""
    yield _summary(found)
    if needs := room.line(_needs(found), output):
        yield needs


def _needs(found: Sequence[Outlook]) -> Needs:
    return room.needs(found, sum(one.why is None for one in found))


def _summary(found: Sequence[Outlook]) -> str:
    """One line: how many steps will run, and what that took before."""
    ahead = [outlook for outlook in found if outlook.why]
    known = [outlook for outlook in ahead if outlook.seconds is not None]
    if not ahead:
        return "every step is cached"
    text = f"{len(ahead)} of {len(found)} steps will run"
    if known:
        seconds = sum(outlook.seconds or 0 for outlook in known)
        size = sum(outlook.bytes or 0 for outlook in known) / 1e6
        text += f"; before, {_of(known, ahead)} took {seconds:.0f} s and {size:.0f} MB"
    return text


def _of(known: Sequence[Outlook], ahead: Sequence[Outlook]) -> str:
    return "they" if len(known) == len(ahead) else f"{len(known)} of them"


def lines(plan: Plan, *, explain: bool) -> Iterator[str]:
    """The steps; to explain them, with their options and who set those."""
    yield f"image {plan.image.name} for site {plan.site.name}"
    for step in plan.steps:
        yield f"{step.id[:12]}  {step.layer.name:<16}  {step.layer.summary}"
        for name, value in step.options.items() if explain else ():
            setting = f"{name} = {value.text or '(empty)'}"
            yield f"{'':14}{setting:<44}  {value.origin}"
    for item in plan.left_out:
        yield f"{'left out':<12}  {item.layer:<16}  {item.reason}"
