"""Make a SIF of what an engine's steps come to, as Apptainer's steps would have given it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sifwright import files, host_checks, keptfiles, runner
from sifwright.assembly import compose
from sifwright.dockerimage.closing import plain
from sifwright.dockerimage.preparing import usable
from sifwright.dockerimage.steps import tree
from sifwright.dockerimage.work import Work
from sifwright.errors import BuildError, MachineError
from sifwright.render import metadata, ociimage
from sifwright.sif.writing import Partition
from sifwright.squash.pack import Live, Packing, pack
from sifwright.task import Made
from sifwright.workspace import workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sifwright.dockerimage.steps import Tree
    from sifwright.render.metadata import BaseMetadata
    from sifwright.task import Task

__all__ = ["making"]

_OUTPUT_FIX = "Free space there, or choose another folder with --output."
_HEADER = "org.label-schema.usage.singularity.deffile."


@contextmanager
def making(task: Task, why_not: str) -> Iterator[Made]:
    """Write image.sif; `why_not` says what keeps this machine from making one of a tree.

    Raises `BuildError` where a step fails; the steps before it stay in the engine.
    """
    if why_not:
        fix = "Build the image alone: --engine docker --format image."
        raise MachineError.of(f"no SIF can be made of an image here: {why_not}", fix=fix)
    ociimage.start(task.plan)
    engine = usable(task.plan, task.watcher.progress)
    with workspace(host_checks.temporary_root()) as folder:
        work = Work(
            plan=task.plan,
            engine=engine,
            inputs=task.inputs,
            settings=task.settings,
            header=task.header,
            folder=folder,
            made=task.made,
            watcher=task.watcher,
            cached=task.cached,
        )
        with tree(work) as found:
            task.watcher.timer.start("pack")
            yield _made(task, work, found)


def _made(task: Task, work: Work, found: Tree) -> Made:
    root = _unpacked(task, work, plain(work, found))
    with workspace(work.folder) as scratch:
        (scratch / "upper").mkdir()
        changes = Live(tree=root, state=scratch / "state.json", upper=scratch / "upper")
        how = Packing(compression=task.plan.site.compression, log=task.log)
        packed = pack(changes, scratch, how)
        digest = files.sha256(packed.squashfs)
        layer = Partition(path=packed.squashfs, name="rootfs", is_system=True, sha256=digest)
        built = datetime.now(UTC).isoformat(timespec="seconds")
        kept = list(metadata.files(task.plan, task.definition, _base(task, root), built))
        fingerprint = compose(task, [layer], kept, keptfiles.modes(root), scratch)
    return Made(
        keys=found.keys,
        used=found.used,
        compression=task.plan.site.compression,
        fingerprint=fingerprint,
    )


def _unpacked(task: Task, work: Work, image: str) -> Path:
    """The tree of an image, with what Apptainer adds to it."""
    definition, root = work.folder / "tree.def", work.folder / "tree"
    # Beside the output, which has to have room for as much anyway.
    with work.saved(image, work.made, _OUTPUT_FIX) as archive:
        definition.write_text(f"Bootstrap: docker-archive\nFrom: {archive}\n")
        command = task.engine.sandbox_command(definition, root, binds=())
        environment = task.environment(work.folder)
        status = runner.stream(command, log=task.log, on_line=task.watcher, env=environment)
    if status != 0:
        what = f"{task.engine.product} cannot unpack the image of {work.engine}"
        raise BuildError(task.watcher.problem(what))
    return root


def _base(task: Task, root: Path) -> BaseMetadata:
    """What Apptainer says of the tree, but for where it got it: it is made as the plan says."""
    found = keptfiles.base_metadata(root)
    labels = {name: text for name, text in found.labels.items() if not name.startswith(_HEADER)}
    header = re.findall(r"^(\w+): (.*)$", task.definition.partition("\n%")[0], re.MULTILINE)
    ours = {f"{_HEADER}{keyword.lower()}": value for keyword, value in header}
    return replace(found, labels={**labels, **ours})
