"""Check the machine before a build, and prepare the folders and settings that it uses."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sifwright.build.checks import host_checks, preflight
from sifwright.build.docker.choose_engine import choose_engine
from sifwright.build.output_parser import OutputParser
from sifwright.build.request import first_use, host_settings
from sifwright.build.request.build_context import BuildContext
from sifwright.build.request.inputs import Inputs
from sifwright.host.network import pip_settings
from sifwright.render.definition import definition, require_header
from sifwright.system import cache_folder, files
from sifwright.system.tempdirs import name_folder_in_errors, remove_stale, workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sifwright.build.request.build_request import BuildRequest
    from sifwright.build.request.host_settings import Settings
    from sifwright.host.engines.docker import Docker
    from sifwright.system.progress import Timer


@contextmanager
def prepare_build(request: BuildRequest, timer: Timer) -> Iterator[BuildContext]:
    """Check the machine, and yield the context of a build; its folders are removed afterwards.

    Raises `MachineError` before anything is written.
    """
    plan, output, base = request.plan, request.output, request.base
    facts = host_settings.values(base)
    require_header(base.step, facts)
    timer.start("check this machine")
    pip_settings.ask_ahead()
    docker = choose_engine(plan, timer.progress) if request.options.engine == "docker" else None
    # Before free space is measured.
    remove_stale(output.folder, host_checks.temporary_root(), cache_folder.root())
    inputs = Inputs.recorded(base, output.pins_folder)
    engine = preflight.check_build(request, inputs, facts, timer.progress.note)
    inputs = inputs.asked(timer.progress.note)
    # The first folder is on the file system of the output, so that publishing is a rename.
    with workspace(output.folder) as staging, workspace(host_checks.temporary_root()) as work_dir:
        header = {**facts, **inputs.header}
        context = BuildContext(
            plan=plan,
            base=base,
            output=output,
            options=request.options,
            expected=request.expected,
            definition=definition(plan, header),
            header=header,
            inputs=inputs,
            settings=_settings(work_dir, inputs, docker),
            staging=staging,
            work_dir=work_dir,
            watcher=OutputParser(timer=timer, fix=f"Whole log: {output.log}"),
            apptainer=engine,
            docker=docker,
        )
        with _publish_log(context):
            yield context


def _settings(work_dir: Path, inputs: Inputs, docker: Docker | None) -> Settings:
    with name_folder_in_errors(work_dir, host_checks.TEMPORARY_FIX):
        proxies = docker.proxies() if docker else {}
        return host_settings.prepare(work_dir, first_use.lines(inputs.record), proxies)


@contextmanager
def _publish_log(context: BuildContext) -> Iterator[None]:
    """Publish the log at the end of the build, also of one that failed."""
    try:
        yield
    finally:
        if context.log.exists():
            files.publish(context.log, context.output.log)
