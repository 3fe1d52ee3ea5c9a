"""Check the machine before a build, and prepare the folders and settings that it uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.catalog.model import Site
from sifwright.errors import MachineError, UsageError
from sifwright.make_image.check_machine import preflight
from sifwright.make_image.remove_stale import remove_stale
from sifwright.make_image.resolve_request import host_settings
from sifwright.make_image.resolve_request.build_context import BuildContext
from sifwright.make_image.resolve_request.build_request import BuildRequest
from sifwright.make_image.resolve_request.host_settings import Settings
from sifwright.make_image.resolve_request.output_parser import OutputParser
from sifwright.make_image.resolve_request.recorded_inputs import Inputs
from sifwright.render import oci_config
from sifwright.render.definition import require_header
from sifwright.system import files
from sifwright.system.progress import Progress, Timer
from sifwright.system.tempdirs import (
    TEMPORARY_FIX,
    name_folder_in_errors,
    temporary_root,
    workspace,
)

if TYPE_CHECKING:
    from sifwright.host.engines.docker import Docker


@contextmanager
def prepare_build(request: BuildRequest, timer: Timer) -> Iterator[BuildContext]:
    """Check the machine, and yield the context of a build; its folders are removed afterwards.

    Raises `MachineError` before anything is written.
    """
    base, options, output = request.base, request.options, request.output
    _require_secrets(request)
    header = host_settings.values(base)
    require_header(base.step, header)
    timer.start("check this machine")
    engine = None
    if options.engine == "docker":
        oci_config.start(request.plan)  # raises `PlanError` for a plan that no such engine builds
        engine = _docker(request.plan.site, timer.progress)
    # Before free space is measured.
    remove_stale(output.folder, engine)
    apptainer = preflight.check_build(request, header, timer.progress.note)
    inputs = request.recorded_inputs.with_current_digest(timer.progress.note)
    # The first folder is on the file system of the output, so that publishing is a rename.
    with workspace(output.folder) as staging, workspace(temporary_root()) as work_dir:
        context = BuildContext(
            plan=request.plan,
            base=base,
            output=output,
            options=options,
            entries=request.entries,
            header={**header, **inputs.header},
            published=inputs.published({**header, **inputs.header}),
            inputs=inputs,
            settings=replace(_settings(work_dir, inputs, engine), secrets=options.secrets),
            staging=staging,
            work_dir=work_dir,
            watcher=OutputParser(timer=timer, fix=f"Whole log: {output.log}"),
            apptainer=apptainer,
            docker=engine,
        )
        try:
            yield context
        finally:
            if context.log.exists():
                files.publish(context.log, output.log)


def _require_secrets(request: BuildRequest) -> None:
    """Raise `UsageError` for a secret that a layer needs and that was not given."""
    for step in request.plan.steps:
        for name in step.layer.secrets:
            if name not in request.options.secrets:
                message = f"layer '{step.layer.name}' needs the secret '{name}'"
                fix = f"Give it: --secret id={name},src=FILE"
                raise UsageError.of(message, where="--secret", fix=fix)


def _docker(site: Site, progress: Progress) -> Docker:
    from sifwright.host.engines import docker  # noqa: PLC0415  # 0.3 s

    engine = docker.find()
    if engine.processor != site.processor:
        # Emulated programs would take days to build PyTorch.
        raise MachineError.of(
            f"site '{site.name}' has {site.processor} processors,"
            f" {engine} runs on {engine.processor}",
            where=engine.address,
            fix=f"Build on a machine with {site.processor} processors.",
        )
    progress.note(f"with {engine} at {engine.address}")
    return engine


def _settings(work_dir: Path, inputs: Inputs, engine: Docker | None) -> Settings:
    with name_folder_in_errors(work_dir, TEMPORARY_FIX):
        proxies = engine.proxies() if engine else {}
        return host_settings.prepare(work_dir, inputs.record, proxies, locked=bool(inputs.lock))
