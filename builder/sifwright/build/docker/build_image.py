"""Build a plan as an image of an engine: run the steps, test in the image, give it its name."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sifwright import __version__
from sifwright.build.docker.configure import configure_image
from sifwright.build.docker.docker_steps import tree
from sifwright.build.docker.prepare import prepared
from sifwright.build.docker.test_image import run_tests
from sifwright.build.request import base_image, build_options, first_use, host_settings
from sifwright.host.engines import docker
from sifwright.plan.plan_json import plan_document, plan_json
from sifwright.render import dockerfile, oci_config
from sifwright.render.definition import require_header
from sifwright.system import files
from sifwright.system.progress import Timer
from sifwright.system.tempdirs import name_folder_in_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sifwright.build.docker.docker_context import DockerBuildContext
    from sifwright.build.docker.docker_image_folder import DockerImageFolder
    from sifwright.build.docker.docker_steps import BuiltImage
    from sifwright.build.request.build_options import BuildOptions
    from sifwright.plan.model import Plan
    from sifwright.system.progress import Progress

__all__ = ["build", "is_current"]

_OUTPUT_FIX = "Free space there, or choose another folder with --output."


def is_current(place: DockerImageFolder, wanted: Mapping[str, object]) -> bool:
    """Whether the engine has the image of that name whose record says all that is wanted."""
    record = place.whole_record(wanted)
    return record is not None and docker.find().identity(place.name) == record.get("image_id")


def build(plan: Plan, place: DockerImageFolder, progress: Progress, options: BuildOptions) -> None:
    """Build the image, test it and name it; the one that had the name before keeps it till then.

    Raises `MachineError` before anything runs, `BuildError` or `TestError` later.
    """
    wanted, facts = build_options.expected_record(plan, options), host_settings.values(plan)
    require_header(plan, facts)
    with (
        Timer(progress) as timer,
        prepared(plan, facts, place, timer, options) as work,
        tree(work) as found,
    ):
        image = configure_image(work, found)
        proofs = _proofs(plan, found)
        layers = _unproved(proofs, place) if options.tests == "untested" else None
        run_tests(work, image, layers)
        timer.start("publish")
        tested = {"tested": options.tests, "proofs": proofs, "image_id": image}
        _publish(work, found, place, {**wanted, **tested, **_record(work, found, image)})


def _proofs(plan: Plan, found: BuiltImage) -> dict[str, str]:
    """Of each layer with a test, what that proves: the test, and the result it is run on."""
    tested = (step.layer for step in plan.steps if step.layer.test)
    texts = {layer.name: f"{found.keys[layer.name]} {layer.test}" for layer in tested}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}


def _unproved(proofs: Mapping[str, str], place: DockerImageFolder) -> list[str]:
    before = place.proofs()
    return [name for name, proof in proofs.items() if before.get(name) != proof]


def _publish(
    work: DockerBuildContext,
    found: BuiltImage,
    place: DockerImageFolder,
    record: Mapping[str, object],
) -> None:
    """The name last: until it is the image's, the record is of none."""
    texts = {"plan.json": plan_json(work.plan), **_dockerfile(work, found.base)}
    with name_folder_in_errors(place.folder, _OUTPUT_FIX):
        for name, text in texts.items():
            (work.made / name).write_text(text)
        (work.made / first_use.FILE).write_text(
            first_use.text(work.inputs.record, [*work.inputs.used, *found.used])
        )
        files.publish(work.made / first_use.FILE, place.image / first_use.FILE)
        place.publish(work.made, record, texts)
    repository, _, tag = place.name.rpartition(":")
    work.engine.tag(str(record["image_id"]), repository, tag)


def _dockerfile(work: DockerBuildContext, base: str) -> dict[str, str]:
    """What gives the same image by hand: 'sifwright render' writes it with all it copies."""
    start = oci_config.start(work.plan)
    if isinstance(start, oci_config.Local):
        return {"Dockerfile": dockerfile.dockerfile(work.plan, base)}
    reference = base_image.redirected_reference(work.plan.site, start.name)
    if isinstance(start, oci_config.Registry):
        reference = reference.at(work.inputs.digest)
    return {"Dockerfile": dockerfile.dockerfile(work.plan, str(reference))}


def _record(work: DockerBuildContext, found: BuiltImage, image: str) -> dict[str, object]:
    return {
        "bytes": work.engine.size(image),
        "sifwright": __version__,
        "engine": str(work.engine),
        "built": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": dict(work.watcher.timer.seconds),
        "own_seconds": dict(work.watcher.own_seconds),
        "timeline": list(work.watcher.timer.timeline),
        **first_use.documents([*work.inputs.used, *found.used]),
        "plan": plan_document(work.plan),
    }
