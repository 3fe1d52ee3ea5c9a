"""A SIF of the steps of Docker Engine or podman, as Apptainer's steps would have given it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sifwright.errors import MachineError
from sifwright.host.engines.apptainer import Apptainer
from sifwright.host.engines.docker import Docker
from sifwright.images.sif.fingerprint import Digests
from sifwright.make_image.assemble_sif.assemble import Metadata, compose, partition_of
from sifwright.make_image.check_machine import preflight
from sifwright.make_image.docker import docker_steps
from sifwright.make_image.docker.configure_image import configure_like_base
from sifwright.make_image.docker.docker_steps import DockerSteps, StepImage
from sifwright.make_image.pack_layers.pack import PackOptions, WorkTree, pack
from sifwright.make_image.resolve_request import host_settings
from sifwright.make_image.resolve_request.build_context import BuildContext
from sifwright.make_image.resolve_request.image_folder import OUTPUT_FIX
from sifwright.make_image.run_steps import build_folder
from sifwright.make_image.run_steps.sif_engine import SifEngine
from sifwright.make_image.run_steps.step_engine import Artifact
from sifwright.plan.source_digest import SourceDigest
from sifwright.render import singularity_metadata
from sifwright.render.singularity_metadata import BaseMetadata
from sifwright.system import user_namespace
from sifwright.system.tempdirs import workspace


@dataclass(kw_only=True)
class DockerStepsToSif(SifEngine):
    """The step engine that runs steps as `DockerSteps` does, and makes a SIF of the last image."""

    steps: DockerSteps

    def run(self, number: int, below: Sequence[StepImage]) -> StepImage:
        return self.steps.run(number, below)

    def finish(self, results: Sequence[StepImage]) -> Artifact:
        """Unpack the image and pack its tree; raises `BuildError`."""
        steps = self.steps
        image = steps.with_plan(results[-1].image)
        self.context.watcher.timer.start("pack")
        root = self._unpack(configure_like_base(steps.build, image, steps.base))
        digests = self._pack(root, steps.used(results))
        keys = [result.image for result in results]
        compression = self.context.plan.site.compression
        return self.artifact(keys, steps.used(results), digests, compression)

    def _unpack(self, image: str) -> Path:
        """Return the tree of an image, with what Apptainer adds to it."""
        context, build = self.context, self.steps.build
        definition, root = context.work_dir / "tree.def", context.work_dir / "tree"
        # Beside the output, which has to have room for as much anyway.
        with build.archive_file(build.engine.save(image), context.staging, OUTPUT_FIX) as archive:
            definition.write_text(f"Bootstrap: docker-archive\nFrom: {archive}\n", encoding="utf-8")
            command = user_namespace.around(self._owners, root)
            command += self.apptainer.sandbox_command(definition, root, binds=())
            failure = f"{self.apptainer.product} cannot unpack the image of {build.engine}"
            context.run(command, failure)
        return root

    @property
    def _owners(self) -> Path:
        return self.context.work_dir / "owners"

    def _pack(self, root: Path, used: Sequence[SourceDigest]) -> Digests:
        context = self.context
        with workspace(context.work_dir) as scratch:
            (scratch / "upper").mkdir()
            changes = WorkTree(tree=root, state=scratch / "state.json", upper=scratch / "upper")
            options = PackOptions(
                compression=context.plan.site.compression,
                log=context.log,
                fix=context.watcher.fix,
                owners=self._owners,
                epoch=context.options.epoch,
            )
            packed = pack(changes, scratch, options, exclude=build_folder.LEFT_OUT)
            metadata = Metadata(self._metadata(root), build_folder.modes(root))
            return compose(context, [partition_of(packed.squashfs)], metadata, scratch, used)

    def _metadata(self, root: Path) -> BaseMetadata:
        """Return Apptainer's metadata of the tree, without the header that unpacked it."""
        metadata, start = build_folder.base_metadata(root), singularity_metadata.OF_HEADER
        labels = {
            name: text for name, text in metadata.labels.items() if not name.startswith(start)
        }
        return replace(metadata, labels=labels)


@contextmanager
def open_engine(
    context: BuildContext, engine: Docker, apptainer: Apptainer
) -> Iterator[DockerStepsToSif]:
    """Yield the engine; raises `MachineError` where no SIF can be made of a tree."""
    if why_not := preflight.why_not_stepwise(apptainer, context.plan):
        fix = "Build the image alone: --engine docker --format image."
        raise MachineError.of(f"no SIF can be made of an image here: {why_not}", fix=fix)
    host_settings.note_epoch(context.settings.machine, context.options.epoch)
    with docker_steps.open_engine(context, engine) as steps:
        yield DockerStepsToSif(context=context, apptainer=apptainer, steps=steps)
