"""The command `build`. Most builds have nothing to do: then it loads no more than it needs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sifwright import localbase
from sifwright.context import load, output_at, progress_of
from sifwright.errors import UsageError
from sifwright.extending import known
from sifwright.paths import project_folder
from sifwright.recall import Recall, Words

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator

    from sifwright.dockerimage.place import Place
    from sifwright.model import Plan
    from sifwright.order import Order
    from sifwright.output import Output
    from sifwright.progress import Progress
    from sifwright.wished import Wishes

__all__ = ["build_command"]


def build_command(arguments: Namespace) -> None:
    recall = Recall(project_folder(arguments.project), _words(arguments))
    progress = progress_of(arguments)
    order = None if arguments.force else recall.order()
    is_new = False
    if order and _is_current(arguments, order):
        _say(order.notes, progress)
    else:
        order, is_new = _decide_and_build(arguments, recall, progress)
    if not is_new:
        # Earlier versions built from such a base: that image lacks most of it.
        localbase.refuse(order.base, order.base_layer)
    state = "built" if is_new else "up to date"
    if _format(arguments) == "image":
        _say(_image_result(order, _place(arguments, order), state), progress)
    else:
        _say(_result(order, _output(arguments, order), state), progress)


def _engine(arguments: Namespace) -> Literal["apptainer", "docker"]:
    """The command `extend` has no choice."""
    return getattr(arguments, "engine", "apptainer")


def _format(arguments: Namespace) -> Literal["sif", "image"]:
    named = getattr(arguments, "format", None)
    if named == "image" and _engine(arguments) == "apptainer":
        raise UsageError.of("Apptainer makes SIFs only", fix="--format sif, or --engine docker.")
    return named or ("sif" if _engine(arguments) == "apptainer" else "image")


def _is_current(arguments: Namespace, order: Order) -> bool:
    if _format(arguments) == "sif":
        return _output(arguments, order).is_current(order.facts())
    from sifwright.dockerimage.build import is_current  # noqa: PLC0415  # a SIF needs none of it

    return is_current(_place(arguments, order), order.facts())


def _words(arguments: Namespace) -> Words:
    return Words(
        site=arguments.site,
        image=arguments.image,
        settings=arguments.settings,
        layout=arguments.layout or "",
        tests=arguments.tests,
        extension=known.digest(Path(arguments.output, arguments.site, arguments.image)),
        engine=f"{_engine(arguments)} {_format(arguments)}",
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
        engine=_engine(arguments),
        format=_format(arguments),
    )
    order = wished.order(plan, wishes, notes)
    is_new = wishes.force or not _is_current(arguments, order)
    if is_new:
        _build(arguments, plan, order, wishes, progress)
    recall.remember(order, catalog.included)
    return order, is_new


def _build(
    arguments: Namespace, plan: Plan, order: Order, wishes: Wishes, progress: Progress
) -> None:
    if wishes.format == "image":
        from sifwright.dockerimage import build as dockerbuild  # noqa: PLC0415  # as above

        dockerbuild.build(plan, _place(arguments, order), progress, wishes)
        return
    from sifwright.build import build  # noqa: PLC0415  # pulls in ssl and the engine

    build(plan, _output(arguments, order), progress, wishes)


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


def _place(arguments: Namespace, order: Order) -> Place:
    from sifwright.dockerimage.place import Place  # noqa: PLC0415  # as above

    return Place.of(_output(arguments, order), order)


def _image_result(order: Order, place: Place, state: str) -> Iterator[str]:
    """The same of an image in the engine."""
    record = json.loads(place.record.read_text())
    size, engine = record["bytes"] / 1e6, record["engine"]
    yield f"{state}: {place.name} in {engine} ({size:.0f} MB, plan {order.plan[:12]})"
    program = "conda-python-simple -c 'import torch'" if order.has_run_scripts else "bash"
    command = "podman" if engine.startswith("podman") else "docker"
    yield f"try it:     {command} run --rm -it {place.name} {program}"


def _result(order: Order, output: Output, state: str) -> Iterator[str]:
    """What stands there now, and what to do next."""
    size = output.link.stat().st_size / 1e6
    yield f"{state}: {output.link} ({size:.0f} MB, plan {order.plan[:12]})"
    program = "conda-python-simple -c 'import torch'" if order.has_run_scripts else "bash"
    yield f"try it:     singularity exec {shlex.quote(str(output.link))} {program}"
    if older := output.older():
        size = sum(path.stat().st_size for path in older) / 1e6
        yield f"older images, yours to remove: {len(older)} in {output.folder} ({size:.0f} MB)"
