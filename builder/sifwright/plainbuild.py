"""Build a definition file by the engine's own `build`: everything runs, nothing is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright import host_checks, runner, steptmp
from sifwright.errors import BuildError
from sifwright.sif import image
from sifwright.task import Made
from sifwright.workspace import workspace

if TYPE_CHECKING:
    from sifwright.task import Task

__all__ = ["make"]


def make(task: Task) -> Made:
    """Write image.sif; raises `BuildError`."""
    plan, engine, watcher = task.plan, task.engine, task.watcher
    compression = engine.compression(plan.site.compression)
    if compression != plan.site.compression:
        watcher.progress.note(f"{engine.product} {engine.version} compresses with gzip only")
    watcher.timer.start(plan.steps[0].layer.name)
    with workspace(host_checks.temporary_root()) as work:
        command = engine.build_command(
            task.made / f"{plan.image.name}.def",
            task.made / "image.sif",
            compression=compression,
            binds=[*steptmp.made(work), *task.settings.binds],
        )
        environment = task.environment(work)
        status = runner.stream(command, log=task.log, on_line=watcher, env=environment)
    if status != 0:
        raise BuildError(watcher.problem(f"{engine.product} build failed"))
    digest = image.fingerprint(task.made / "image.sif")
    # Nobody knows the result of a single step, so no test of an earlier image counts for this one.
    keys = {step.layer.name: digest for step in plan.steps}
    return Made(keys=keys, used=watcher.used, compression=compression, fingerprint=digest)
