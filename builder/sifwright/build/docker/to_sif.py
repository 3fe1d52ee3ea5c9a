"""Make a SIF of what an engine's steps come to, as Apptainer's steps would have given it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sifwright.build.checks import host_checks
from sifwright.build.docker.configure import configure_like_base
from sifwright.build.docker.docker_context import DockerBuildContext
from sifwright.build.docker.docker_steps import tree
from sifwright.build.docker.prepare import usable
from sifwright.build.layers.pack import PackOptions, WorkTree, pack
from sifwright.build.request.build_context import BuiltSif
from sifwright.build.steps import build_folder
from sifwright.build.steps.assemble import compose
from sifwright.errors import BuildError, MachineError
from sifwright.images.sif.write_sif import Partition
from sifwright.render import oci_config, singularity_metadata
from sifwright.system import files, processes, user_namespace
from sifwright.system.tempdirs import workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sifwright.build.docker.docker_steps import BuiltImage
    from sifwright.build.request.build_context import BuildContext
    from sifwright.render.singularity_metadata import BaseMetadata

__all__ = ["built_sif"]

_OUTPUT_FIX = "Free space there, or choose another folder with --output."
_HEADER = "org.label-schema.usage.singularity.deffile."


@contextmanager
def built_sif(context: BuildContext, why_not: str) -> Iterator[BuiltSif]:
    """Write image.sif; `why_not` says what keeps this machine from making one of a tree.

    Raises `BuildError` where a step fails; the steps before it stay in the engine.
    """
    if why_not:
        fix = "Build the image alone: --engine docker --format image."
        raise MachineError.of(f"no SIF can be made of an image here: {why_not}", fix=fix)
    oci_config.start(context.plan)
    engine = usable(context.plan, context.watcher.progress)
    with workspace(host_checks.temporary_root()) as folder:
        work = DockerBuildContext(
            plan=context.plan,
            engine=engine,
            inputs=context.inputs,
            settings=context.settings,
            header=context.header,
            folder=folder,
            made=context.made,
            watcher=context.watcher,
            cached=context.cached,
        )
        with tree(work) as found:
            context.watcher.timer.start("pack")
            yield _made(context, work, found)


def _made(context: BuildContext, work: DockerBuildContext, found: BuiltImage) -> BuiltSif:
    root = _unpacked(context, work, configure_like_base(work, found))
    with workspace(work.folder) as scratch:
        (scratch / "upper").mkdir()
        changes = WorkTree(tree=root, state=scratch / "state.json", upper=scratch / "upper")
        owners = work.folder / "owners"
        how = PackOptions(compression=context.plan.site.compression, log=context.log, owners=owners)
        packed = pack(changes, scratch, how)
        digest = files.sha256(packed.squashfs)
        layer = Partition(path=packed.squashfs, name="rootfs", is_system=True, sha256=digest)
        built = datetime.now(UTC).isoformat(timespec="seconds")
        kept = list(
            singularity_metadata.files(
                context.plan, context.definition, _base(context, root), built
            )
        )
        fingerprint = compose(context, [layer], kept, build_folder.modes(root), scratch)
    return BuiltSif(
        keys=found.keys,
        used=found.used,
        compression=context.plan.site.compression,
        fingerprint=fingerprint,
    )


def _unpacked(context: BuildContext, work: DockerBuildContext, image: str) -> Path:
    """The tree of an image, with what Apptainer adds to it."""
    definition, root = work.folder / "tree.def", work.folder / "tree"
    # Beside the output, which has to have room for as much anyway.
    with work.saved(image, work.made, _OUTPUT_FIX) as archive:
        definition.write_text(f"Bootstrap: docker-archive\nFrom: {archive}\n")
        command = user_namespace.around(work.folder / "owners", root)
        command += context.engine.sandbox_command(definition, root, binds=())
        environment = context.environment(work.folder)
        status = processes.stream(
            command, log=context.log, on_line=context.watcher, env=environment
        )
    if status != 0:
        what = f"{context.engine.product} cannot unpack the image of {work.engine}"
        raise BuildError(context.watcher.problem(what))
    return root


def _base(context: BuildContext, root: Path) -> BaseMetadata:
    """What Apptainer says of the tree, but for where it got it: it is made as the plan says."""
    found = build_folder.base_metadata(root)
    labels = {name: text for name, text in found.labels.items() if not name.startswith(_HEADER)}
    header = re.findall(r"^(\w+): (.*)$", context.definition.partition("\n%")[0], re.MULTILINE)
    ours = {f"{_HEADER}{keyword.lower()}": value for keyword, value in header}
    return replace(found, labels={**labels, **ours})
