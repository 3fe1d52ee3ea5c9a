"""The command `build`. Most builds have nothing to do: then it loads no more than it needs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import localbase
from sifwright.context import load, output_at, progress_of
from sifwright.extending import known
from sifwright.paths import project_folder
from sifwright.recall import Recall, Words

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator

    from sifwright.model import Plan
    from sifwright.order import Order
    from sifwright.output import Output
    from sifwright.progress import Progress

__all__ = ["build_command"]


def build_command(arguments: Namespace) -> None:
    recall = Recall(project_folder(arguments.project), _words(arguments))
    progress = progress_of(arguments)
    order = None if arguments.force else recall.order()
    is_new = False
    if order and _output(arguments, order).is_current(order.facts()):
        _say(order.notes, progress)
    else:
        order, is_new = _decide_and_build(arguments, recall, progress)
    if not is_new:
        # Earlier versions built from such a base: that image lacks most of it.
        localbase.refuse(order.base, order.base_layer)
    _say(_result(order, _output(arguments, order), "built" if is_new else "up to date"), progress)


def _words(arguments: Namespace) -> Words:
    return Words(
        site=arguments.site,
        image=arguments.image,
        settings=arguments.settings,
        layout=arguments.layout or "",
        tests=arguments.tests,
        extension=known.digest(Path(arguments.output, arguments.site, arguments.image)),
    )


def _decide_and_build(
    arguments: Namespace, recall: Recall, progress: Progress
) -> tuple[Order, bool]:
    """From the files under `defs/`; whether it was built."""
    from sifwright import wished  # noqa: PLC0415  # with all below, what recalling saves
    from sifwright.plan import resolve  # noqa: PLC0415

    catalog = load(arguments)
    plan = resolve(catalog, arguments.site, arguments.image, arguments.settings)
    notes = _notes(plan, project_folder(arguments.project) / "defs")
    _say(notes, progress)
    wishes = wished.Wishes(
        layout=arguments.layout or plan.site.layout,
        force=arguments.force,
        cached=not arguments.no_cache,
        tests=arguments.tests,
    )
    order = wished.order(plan, wishes, notes)
    output = _output(arguments, order)
    is_new = wishes.force or not output.is_current(order.facts())
    if is_new:
        from sifwright.build import build  # noqa: PLC0415  # pulls in ssl and the engine

        build(plan, output, progress, wishes)
    recall.remember(order, catalog.included)
    return order, is_new


def _notes(plan: Plan, defs: Path) -> list[str]:
    """Said, not refused: the image may be for another purpose than the one that the rule knows."""
    from sifwright import lint  # noqa: PLC0415  # as above

    return [
        f"lint: {error.where}: {error.what}: {error.why} [{error.rule}]"
        for error in lint.errors(plan, defs)
    ]


def _say(lines: Iterable[str], progress: Progress) -> None:
    for line in lines:
        progress.note(line)


def _output(arguments: Namespace, order: Order) -> Output:
    return output_at(arguments, order.site, order.image)


def _result(order: Order, output: Output, state: str) -> Iterator[str]:
    """What stands there now, and what to do next."""
    size = output.link.stat().st_size / 1e6
    yield f"{state}: {output.link} ({size:.0f} MB, plan {order.plan[:12]})"
    program = "conda-python-simple -c 'import torch'" if order.has_run_scripts else "bash"
    yield f"try it:     singularity exec {shlex.quote(str(output.link))} {program}"
    if older := output.older():
        size = sum(path.stat().st_size for path in older) / 1e6
        yield f"older images, yours to remove: {len(older)} in {output.folder} ({size:.0f} MB)"
