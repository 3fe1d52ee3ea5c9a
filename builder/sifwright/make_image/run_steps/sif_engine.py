"""The engine that builds a whole definition file by itself, and what all makers of SIFs share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sifwright.errors import MachineError
from sifwright.host.engines.apptainer import Apptainer
from sifwright.images.contents.inventory import Inventory
from sifwright.images.sif import fingerprint, sif_file
from sifwright.images.sif.fingerprint import Digests
from sifwright.make_image.lock import installed
from sifwright.make_image.resolve_request.build_context import BuildContext
from sifwright.make_image.run_steps import build_folder
from sifwright.make_image.run_steps.sif_tests import run_in_sif
from sifwright.make_image.run_steps.step_engine import Artifact
from sifwright.plan.source_digest import SourceDigest
from sifwright.render.definition import with_machine
from sifwright.system import user_namespace


@dataclass(kw_only=True)
class SifEngine:
    """The part of an `ImageEngine` that is the same for all engines that make a SIF."""

    context: BuildContext
    apptainer: Apptainer

    @property
    def sif(self) -> Path:
        return self.context.staging / "image.sif"

    def artifact(
        self,
        keys: Sequence[str],
        used: Sequence[SourceDigest],
        digests: Digests,
        compression: str,
    ) -> Artifact:
        """Return the artifact of image.sif."""
        engine = f"{self.apptainer.product} {self.apptainer.version}"
        facts = {**digests.document, "engine": engine, "compression": compression}
        return Artifact(keys=keys, used=used, facts=facts)

    def installed(self, _artifact: Artifact) -> Inventory:
        parts = sif_file.partitions(self.sif)
        return installed.of_squashfs([sif_file.place(self.sif, part) for part in parts])

    def test(self, _product: Artifact, layers: Sequence[str] | None) -> int:
        return run_in_sif(self.apptainer, self.sif, layers, self.context.log, self.context.watcher)


class WholeDefinition(SifEngine):
    """The step engine that builds all steps at once by the program's own `build`."""

    def run(self, number: int, below: Sequence[None]) -> None:
        """Run all steps with the first one."""
        if below:
            return
        plan, watcher = self.context.plan, self.context.watcher
        compression = self.apptainer.compression(plan.site.compression)
        if compression != plan.site.compression:
            name = f"{self.apptainer.product} {self.apptainer.version}"
            watcher.progress.note(f"{name} compresses with gzip only")
        watcher.timer.start(plan.steps[number].layer.name)
        self._build(compression)

    def finish(self, _results: Sequence[None]) -> Artifact:
        digests = fingerprint.measure(self.sif)
        # The results of single steps are unknown, so no test of an earlier image counts here.
        keys = [digests.fingerprint for _ in self.context.plan.steps]
        compression = self.apptainer.compression(self.context.plan.site.compression)
        return self.artifact(keys, self.context.watcher.used, digests, compression)

    def _build(self, compression: str) -> None:
        context = self.context
        definition = context.work_dir / f"{context.plan.image.name}.def"
        text = with_machine(context.planned, context.plan, context.header)
        definition.write_text(text, encoding="utf-8")
        binds = [*build_folder.make_step_tmp(context.work_dir), *context.settings.definition_binds]
        command = self.apptainer.build_command(
            definition, self.sif, compression=compression, binds=binds
        )
        context.run([*user_namespace.around(), *command], f"{self.apptainer.product} build failed")


@contextmanager
def open_whole_definition(
    context: BuildContext, apptainer: Apptainer, why_not: str
) -> Iterator[WholeDefinition]:
    """Yield the engine; `why_not` is why steps cannot be run one by one.

    Raises `MachineError` for a layered SIF, which needs single steps.
    """
    if any(step.layer.secrets for step in context.plan.steps):
        message = f"no layer can have secrets here: {why_not}"
        raise MachineError.of(message, fix="Build where steps run one by one.")
    if context.options.layout == "layered":
        fix = "Build it with --layout flat."
        raise MachineError.of(f"no layered SIF can be made here: {why_not}", fix=fix)
    context.watcher.progress.note(f"every step will run, nothing is kept: {why_not}")
    yield WholeDefinition(context=context, apptainer=apptainer)
