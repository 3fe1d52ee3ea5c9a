"""The engine that builds a whole definition file by itself, and what all makers of SIFs share."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.build import test
from sifwright.build.engine import Artifact
from sifwright.build.steps import build_folder
from sifwright.errors import BuildError, MachineError
from sifwright.images.sif.fingerprint import sif_fingerprint
from sifwright.system import processes, user_namespace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from sifwright.build.request.build_context import BuildContext
    from sifwright.build.request.first_use import SourceDigest
    from sifwright.host.engines.apptainer import Apptainer


@dataclass(kw_only=True)
class SifEngine:
    """The part of a `StepEngine` that is the same for all engines that make a SIF."""

    context: BuildContext
    apptainer: Apptainer

    @property
    def sif(self) -> Path:
        return self.context.staging / "image.sif"

    def artifact(
        self,
        keys: Mapping[str, str],
        used: Sequence[SourceDigest],
        fingerprint: str,
        compression: str,
    ) -> Artifact:
        """Return the artifact of image.sif."""
        facts = {
            "sif_fingerprint": fingerprint,
            "engine": f"{self.apptainer.product} {self.apptainer.version}",
            "compression": compression,
        }
        return Artifact(keys=keys, used=used, facts=facts)

    def test(self, _artifact: Artifact, layers: Sequence[str] | None) -> int:
        return test.run_in_sif(
            self.apptainer, self.sif, layers, self.context.log, self.context.watcher
        )

    def name(self, _artifact: Artifact) -> None:
        """Do nothing: the link image.sif is the name of a SIF."""


class WholeDefinition(SifEngine):
    """Builds all steps at once by the engine's own `build`, without a cache."""

    def run(self, number: int, below: Sequence[None]) -> None:
        """Do nothing: all steps run in `finish`."""

    def finish(self, _results: Sequence[None]) -> Artifact:
        plan, watcher = self.context.plan, self.context.watcher
        compression = self.apptainer.compression(plan.site.compression)
        if compression != plan.site.compression:
            name = f"{self.apptainer.product} {self.apptainer.version}"
            watcher.progress.note(f"{name} compresses with gzip only")
        watcher.timer.start(plan.steps[0].layer.name)
        self._build(compression)
        fingerprint = sif_fingerprint(self.sif)
        # The results of single steps are unknown, so no test of an earlier image counts here.
        keys = {step.layer.name: fingerprint for step in plan.steps}
        return self.artifact(keys, watcher.used, fingerprint, compression)

    def _build(self, compression: str) -> None:
        context = self.context
        definition = context.work_dir / f"{context.plan.image.name}.def"
        definition.write_text(context.definition)
        binds = [*build_folder.make_step_tmp(context.work_dir), *context.settings.definition_binds]
        command = self.apptainer.build_command(
            definition, self.sif, compression=compression, binds=binds
        )
        status = processes.stream(
            [*user_namespace.around(), *command],
            log=context.log,
            on_line=context.watcher,
            env=context.environment(),
        )
        if status != 0:
            raise BuildError(context.watcher.problem(f"{self.apptainer.product} build failed"))


@contextmanager
def open_whole_definition(
    context: BuildContext, apptainer: Apptainer, why_not: str
) -> Iterator[WholeDefinition]:
    """Yield the engine; `why_not` is why steps cannot be run one by one.

    Raises `MachineError` for a layered SIF, which needs single steps.
    """
    if context.options.layout == "layered":
        fix = "Build it with --layout flat."
        raise MachineError.of(f"no layered SIF can be made here: {why_not}", fix=fix)
    context.watcher.progress.note(f"every step will run, nothing is kept: {why_not}")
    yield WholeDefinition(context=context, apptainer=apptainer)
