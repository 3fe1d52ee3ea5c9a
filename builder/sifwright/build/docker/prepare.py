"""Check the machine and its engine before a build, and make what the build works with."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sifwright.build.checks import host_checks, network_checks
from sifwright.build.docker import containers
from sifwright.build.docker.docker_context import DockerBuildContext
from sifwright.build.request import first_use, host_settings
from sifwright.build.request.build_context import LOG
from sifwright.build.request.inputs import Inputs
from sifwright.build.request.output_parser import OutputParser
from sifwright.errors import MachineError
from sifwright.host.engines import docker
from sifwright.host.network import pip_settings
from sifwright.render import oci_config
from sifwright.system import files
from sifwright.system.tempdirs import name_folder_in_errors, remove_stale, workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sifwright.build.docker.docker_image_folder import DockerImageFolder
    from sifwright.build.request.build_options import BuildOptions
    from sifwright.host.engines.docker import Docker
    from sifwright.plan.model import Plan
    from sifwright.system.progress import Progress, Timer

__all__ = ["prepared", "usable"]


@contextmanager
def prepared(
    plan: Plan,
    facts: Mapping[str, str],
    place: DockerImageFolder,
    timer: Timer,
    options: BuildOptions,
) -> Iterator[DockerBuildContext]:
    """Yield what a build works with; its folders are gone afterwards, and the log is kept."""
    timer.start("check this machine")
    oci_config.start(plan)
    pip_settings.ask_ahead()
    engine = usable(plan, timer.progress)
    remove_stale(place.folder, host_checks.temporary_root())
    if problems := list(network_checks.problems(plan, facts)):
        raise MachineError(*problems)
    inputs = Inputs.of(plan, place.image, timer.progress.note)
    with workspace(place.folder) as made, workspace(host_checks.temporary_root()) as folder:
        with name_folder_in_errors(folder, host_checks.TEMPORARY_FIX):
            record, proxies = first_use.lines(inputs.record), docker.proxies(engine)
            settings = host_settings.prepare(folder, record, proxies)
        with _kept_log(made, place.log):
            yield DockerBuildContext(
                plan=plan,
                engine=engine,
                inputs=inputs,
                settings=settings,
                header={**facts, **inputs.header},
                folder=folder,
                made=made,
                watcher=OutputParser(timer=timer, fix=f"Whole log: {place.log}"),
                cached=options.cached,
            )


def usable(plan: Plan, progress: Progress) -> Docker:
    """The engine, without what killed builds left in it; raises `MachineError`."""
    engine = docker.find()
    _require_processor(engine, plan)
    progress.note(f"with {engine} at {engine.address}")
    containers.reclaim(engine)
    return engine


@contextmanager
def _kept_log(made: Path, place: Path) -> Iterator[None]:
    """Keep the log, whatever happens."""
    try:
        yield
    finally:
        if (made / LOG).exists():
            files.publish(made / LOG, place)


def _require_processor(engine: Docker, plan: Plan) -> None:
    """The programs of an image run while it is built; emulated ones would take days for PyTorch."""
    if engine.processor != plan.site.processor:
        raise MachineError.of(
            f"site '{plan.site.name}' has {plan.site.processor} processors,"
            f" {engine} runs on {engine.processor}",
            where=engine.address,
            fix=f"Build on a machine with {plan.site.processor} processors.",
        )
