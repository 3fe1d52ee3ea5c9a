"""Build a plan as an image of an engine: run the steps, test in the image, give it its name."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sifwright import __version__, baseimage, files, firstuse, machine, wished
from sifwright.dockerimage.closing import finished
from sifwright.dockerimage.preparing import prepared
from sifwright.dockerimage.steps import tree
from sifwright.dockerimage.testing import run_tests
from sifwright.engines import docker
from sifwright.progress import Timer
from sifwright.render import dockerfile, ociimage
from sifwright.render.definition import require_header
from sifwright.render.document import plan_document, plan_json
from sifwright.workspace import writing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sifwright.dockerimage.place import Place
    from sifwright.dockerimage.steps import Tree
    from sifwright.dockerimage.work import Work
    from sifwright.model import Plan
    from sifwright.progress import Progress
    from sifwright.wished import Wishes

__all__ = ["build", "is_current"]

_OUTPUT_FIX = "Free space there, or choose another folder with --output."


def is_current(place: Place, wanted: Mapping[str, object]) -> bool:
    """Whether the engine has the image of that name whose record says all that is wanted."""
    record = place.whole_record(wanted)
    return record is not None and docker.find().identity(place.name) == record.get("image_id")


def build(plan: Plan, place: Place, progress: Progress, wishes: Wishes) -> None:
    """Build the image, test it and name it; the one that had the name before keeps it till then.

    Raises `MachineError` before anything runs, `BuildError` or `TestError` later.
    """
    wanted, facts = wished.facts(plan, wishes), machine.values(plan)
    require_header(plan, facts)
    with (
        Timer(progress) as timer,
        prepared(plan, facts, place, timer, wishes) as work,
        tree(work) as found,
    ):
        image = finished(work, found)
        proofs = _proofs(plan, found)
        layers = _unproved(proofs, place) if wishes.tests == "changed" else None
        run_tests(work, image, layers)
        timer.start("publish")
        tested = {"tested": wishes.tests, "proofs": proofs, "image_id": image}
        _publish(work, found, place, {**wanted, **tested, **_record(work, found, image)})


def _proofs(plan: Plan, found: Tree) -> dict[str, str]:
    """Of each layer with a test, what that proves: the test, and the result it is run on."""
    tested = (step.layer for step in plan.steps if step.layer.test)
    texts = {layer.name: f"{found.keys[layer.name]} {layer.test}" for layer in tested}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}


def _unproved(proofs: Mapping[str, str], place: Place) -> list[str]:
    before = place.proofs()
    return [name for name, proof in proofs.items() if before.get(name) != proof]


def _publish(work: Work, found: Tree, place: Place, record: Mapping[str, object]) -> None:
    """The name last: until it is the image's, the record is of none."""
    texts = {"plan.json": plan_json(work.plan), **_dockerfile(work, found.base)}
    with writing(place.folder, _OUTPUT_FIX):
        for name, text in texts.items():
            (work.made / name).write_text(text)
        (work.made / firstuse.FILE).write_text(
            firstuse.text(work.inputs.record, [*work.inputs.used, *found.used])
        )
        files.publish(work.made / firstuse.FILE, place.image / firstuse.FILE)
        place.publish(work.made, record, texts)
    repository, _, tag = place.name.rpartition(":")
    work.engine.tag(str(record["image_id"]), repository, tag)


def _dockerfile(work: Work, base: str) -> dict[str, str]:
    """What gives the same image by hand: 'sifwright render' writes it with all it copies."""
    start = ociimage.start(work.plan)
    if isinstance(start, ociimage.Local):
        return {"Dockerfile": dockerfile.dockerfile(work.plan, base)}
    reference = baseimage.located(work.plan.site, start.name)
    if isinstance(start, ociimage.Registry):
        reference = reference.at(work.inputs.digest)
    return {"Dockerfile": dockerfile.dockerfile(work.plan, str(reference))}


def _record(work: Work, found: Tree, image: str) -> dict[str, object]:
    return {
        "bytes": work.engine.size(image),
        "sifwright": __version__,
        "engine": str(work.engine),
        "built": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": dict(work.watcher.timer.seconds),
        "own_seconds": dict(work.watcher.own_seconds),
        "timeline": list(work.watcher.timer.timeline),
        "sources": [asdict(one) for one in (*work.inputs.used, *found.used)],
        "plan": plan_document(work.plan),
    }
