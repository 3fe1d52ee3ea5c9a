"""Check the machine and its engine before a build, and make what the build works with."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sifwright import files, firstuse, host_checks, machine, network_checks, pipsettings
from sifwright.dockerimage import containers
from sifwright.dockerimage.work import Work
from sifwright.engines import docker
from sifwright.errors import MachineError
from sifwright.inputs import Inputs
from sifwright.render import ociimage
from sifwright.task import LOG
from sifwright.watcher import Watcher
from sifwright.workspace import reclaim, workspace, writing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sifwright.dockerimage.place import Place
    from sifwright.engines.docker import Docker
    from sifwright.model import Plan
    from sifwright.progress import Progress, Timer
    from sifwright.wished import Wishes

__all__ = ["prepared", "usable"]


@contextmanager
def prepared(
    plan: Plan, facts: Mapping[str, str], place: Place, timer: Timer, wishes: Wishes
) -> Iterator[Work]:
    """Yield what a build works with; its folders are gone afterwards, and the log is kept."""
    timer.start("check this machine")
    ociimage.start(plan)
    pipsettings.ask_ahead()
    engine = usable(plan, timer.progress)
    reclaim(place.folder, host_checks.temporary_root())
    if problems := list(network_checks.problems(plan, facts)):
        raise MachineError(*problems)
    inputs = Inputs.of(plan, place.image, timer.progress.note)
    with workspace(place.folder) as made, workspace(host_checks.temporary_root()) as folder:
        with writing(folder, host_checks.TEMPORARY_FIX):
            record, proxies = firstuse.lines(inputs.record), docker.proxies(engine)
            settings = machine.prepare(folder, record, proxies)
        with _kept_log(made, place.log):
            yield Work(
                plan=plan,
                engine=engine,
                inputs=inputs,
                settings=settings,
                header={**facts, **inputs.header},
                folder=folder,
                made=made,
                watcher=Watcher(timer=timer, fix=f"Whole log: {place.log}"),
                cached=wishes.cached,
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
