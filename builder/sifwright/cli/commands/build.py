"""The command `build`. Most builds have nothing to do: then it loads no more than it needs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sifwright.build.request import local_base
from sifwright.build.up_to_date import DecisionCache, RequestKey
from sifwright.catalog.project_folder import project_folder
from sifwright.cli import arguments as shared
from sifwright.cli.context import load, output_at, progress_of
from sifwright.errors import UsageError
from sifwright.recipes.requirements import saved_extension

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable, Iterator

    from sifwright.build.docker.docker_image_folder import DockerImageFolder
    from sifwright.build.request.build_options import BuildOptions
    from sifwright.build.request.build_request import BuildRequest
    from sifwright.build.request.image_folder import ImageFolder
    from sifwright.plan.model import Plan
    from sifwright.system.progress import Progress

__all__ = ["GROUP", "HELP", "add_arguments", "run"]

HELP = "build the SIF, or an image with Docker, and test it"
GROUP = "build"


def add_arguments(parser: ArgumentParser) -> None:
    shared.add_site_and_image(parser)
    shared.add_set(parser)
    shared.add_output_folder(parser)
    shared.add_progress(parser)
    shared.add_build_options(parser)
    parser.add_argument(
        "--engine",
        choices=("apptainer", "docker"),
        default="apptainer",
        help="what runs the steps: apptainer, or Docker Engine or podman's service (docker)",
    )
    parser.add_argument(
        "--format",
        choices=("sif", "image"),
        help="what comes of it: a SIF, or an image in the engine (docker's default)",
    )


def run(arguments: Namespace) -> None:
    """Build the image unless it is up to date; print where it is."""
    recall = DecisionCache(project_folder(arguments.project), _words(arguments))
    progress = progress_of(arguments)
    order = None if arguments.force else recall.order()
    is_new = False
    if order and _is_current(arguments, order):
        _say(order.notes, progress)
    else:
        order, is_new = _decide_and_build(arguments, recall, progress)
    if not is_new:
        # Earlier versions built from such a base: that image lacks most of it.
        local_base.refuse(order.base, order.base_layer)
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


def _is_current(arguments: Namespace, order: BuildRequest) -> bool:
    if _format(arguments) == "sif":
        return _output(arguments, order).is_current(order.facts())
    from sifwright.build.docker.build_image import is_current  # noqa: PLC0415  # a SIF needs none of it

    return is_current(_place(arguments, order), order.facts())


def _words(arguments: Namespace) -> RequestKey:
    return RequestKey(
        site=arguments.site,
        image=arguments.image,
        settings=arguments.settings,
        layout=arguments.layout or "",
        tests=arguments.tests,
        extension=saved_extension.digest(Path(arguments.output, arguments.site, arguments.image)),
        engine=f"{_engine(arguments)} {_format(arguments)}",
    )


def _decide_and_build(
    arguments: Namespace, recall: DecisionCache, progress: Progress
) -> tuple[BuildRequest, bool]:
    """From the files under `defs/`; whether it was built."""
    from sifwright.build.request import build_options  # noqa: PLC0415  # with all below, what recalling saves
    from sifwright.plan.resolve import resolve  # noqa: PLC0415

    catalog = load(arguments)
    plan = resolve(catalog, arguments.site, arguments.image, arguments.settings)
    notes = _notes(plan, project_folder(arguments.project) / "defs")
    _say(notes, progress)
    wishes = build_options.BuildOptions(
        layout=arguments.layout or plan.site.layout,
        force=arguments.force,
        cached=not arguments.no_cache,
        tests=arguments.tests,
        engine=_engine(arguments),
        format=_format(arguments),
    )
    order = build_options.order(plan, wishes, notes)
    is_new = wishes.force or not _is_current(arguments, order)
    if is_new:
        _note_damage(arguments, order, wishes, progress)
        _build(arguments, plan, order, wishes, progress)
    recall.remember(order, catalog.included)
    return order, is_new


def _note_damage(
    arguments: Namespace, order: BuildRequest, wishes: BuildOptions, progress: Progress
) -> None:
    """Say that the image is made anew because it was changed, not because the plan was."""
    if wishes.format == "sif" and not wishes.force:
        output = _output(arguments, order)
        if why := output.damage():
            progress.note(f"{output.link}: {why.splitlines()[0]}; it is made anew")


def _build(
    arguments: Namespace, plan: Plan, order: BuildRequest, wishes: BuildOptions, progress: Progress
) -> None:
    if wishes.format == "image":
        from sifwright.build.docker import build_image as dockerbuild  # noqa: PLC0415  # as above

        dockerbuild.build(plan, _place(arguments, order), progress, wishes)
        return
    from sifwright.build.build_sif import build  # noqa: PLC0415  # pulls in ssl and the engine

    build(plan, _output(arguments, order), progress, wishes)


def _notes(plan: Plan, defs: Path) -> list[str]:
    """Said, not refused: the image may be for another purpose than the one that the rule knows."""
    from sifwright.build.checks import build_place  # noqa: PLC0415  # as above
    from sifwright.plan.lint import run  # noqa: PLC0415  # as above

    return build_place.line(plan.site) + [
        f"lint: {error.where}: {error.what}: {error.why} [{error.rule}]"
        for error in run.errors(plan, defs)
    ]


def _say(lines: Iterable[str], progress: Progress) -> None:
    for line in lines:
        progress.note(line)


def _output(arguments: Namespace, order: BuildRequest) -> ImageFolder:
    return output_at(arguments, order.site, order.image)


def _place(arguments: Namespace, order: BuildRequest) -> DockerImageFolder:
    from sifwright.build.docker.docker_image_folder import DockerImageFolder  # noqa: PLC0415  # as above

    return DockerImageFolder.of(_output(arguments, order), order)


def _image_result(order: BuildRequest, place: DockerImageFolder, state: str) -> Iterator[str]:
    """The same of an image in the engine."""
    record = json.loads(place.record.read_text())
    size, engine = record["bytes"] / 1e6, record["engine"]
    yield f"{state}: {place.name} in {engine} ({size:.0f} MB, plan {order.plan[:12]})"
    command = "podman" if engine.startswith("podman") else "docker"
    yield f"try it:     {command} run --rm -it {place.name} {order.program}".rstrip()


def _result(order: BuildRequest, output: ImageFolder, state: str) -> Iterator[str]:
    """What stands there now, and what to do next."""
    size = output.link.stat().st_size / 1e6
    yield f"{state}: {output.link} ({size:.0f} MB, plan {order.plan[:12]})"
    verb = "exec" if order.program else "run"
    yield f"try it:     singularity {verb} {shlex.quote(str(output.link))} {order.program}".rstrip()
    if older := output.older():
        size = sum(path.stat().st_size for path in older) / 1e6
        yield f"older images, yours to remove: {len(older)} in {output.folder} ({size:.0f} MB)"
