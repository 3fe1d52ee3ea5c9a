"""Build a definition file by the engine's own `build`: everything runs, nothing is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.build.checks import host_checks
from sifwright.build.request.build_context import BuiltSif
from sifwright.build.steps import step_tmp
from sifwright.errors import BuildError
from sifwright.images.sif import sif_file
from sifwright.system import processes, user_namespace
from sifwright.system.tempdirs import workspace

if TYPE_CHECKING:
    from sifwright.build.request.build_context import BuildContext

__all__ = ["make"]


def make(context: BuildContext) -> BuiltSif:
    """Write image.sif; raises `BuildError`."""
    plan, engine, watcher = context.plan, context.engine, context.watcher
    compression = engine.compression(plan.site.compression)
    if compression != plan.site.compression:
        watcher.progress.note(f"{engine.product} {engine.version} compresses with gzip only")
    watcher.timer.start(plan.steps[0].layer.name)
    with workspace(host_checks.temporary_root()) as work:
        command = user_namespace.around()
        command += engine.build_command(
            context.made / f"{plan.image.name}.def",
            context.made / "image.sif",
            compression=compression,
            binds=[*step_tmp.made(work), *context.settings.binds],
        )
        environment = context.environment(work)
        status = processes.stream(command, log=context.log, on_line=watcher, env=environment)
    if status != 0:
        raise BuildError(watcher.problem(f"{engine.product} build failed"))
    digest = sif_file.fingerprint(context.made / "image.sif")
    # Nobody knows the result of a single step, so no test of an earlier image counts for this one.
    keys = {step.layer.name: digest for step in plan.steps}
    return BuiltSif(keys=keys, used=watcher.used, compression=compression, fingerprint=digest)
