"""Build an image step by step: run what is not in the cache, and put the results together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from sifwright import baseimage, host_checks, runner
from sifwright.assembly import assemble
from sifwright.cachedsteps import CachedSteps, used
from sifwright.downloads import ahead
from sifwright.engines import settings
from sifwright.errors import MachineError, UsageError
from sifwright.render.definition import base_definition
from sifwright.sandbox import Sandbox
from sifwright.schema import did_you_mean
from sifwright.sif.layout import MAXIMUM_OVERLAYS
from sifwright.sif.writing import PartitionError
from sifwright.squash import namespace
from sifwright.squash.pack import FORMAT
from sifwright.steps import Steps
from sifwright.store import location
from sifwright.store.store import Store
from sifwright.task import Made
from sifwright.workspace import workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sifwright.downloads.ahead import Ahead
    from sifwright.engines.apptainer import Apptainer
    from sifwright.inputs import Inputs
    from sifwright.model import Plan
    from sifwright.task import Task

__all__ = ["cached_steps", "making", "obstacle", "open_shell"]

_HINT = "before layer '{layer}': bash install.sh runs it; what you change is gone after 'exit'"


def obstacle(engine: Apptainer, plan: Plan) -> str:
    """Why steps cannot be run one by one here; empty if they can."""
    if len(plan.steps) > MAXIMUM_OVERLAYS:
        return f"it has {len(plan.steps)} layers, and {MAXIMUM_OVERLAYS} can be stacked"
    if engine.product != "apptainer":
        return f"{engine.product} is not known to run steps on overlays"
    if not settings.allows_overlays(engine):
        return "overlays are switched off ('enable overlay = no' in apptainer.conf)"
    problem = namespace.problem()
    return problem.what if problem else ""


def _surroundings(plan: Plan, inputs: Inputs) -> dict[str, str]:
    """What decides the bytes of every step beside the plan; see `stepkey.key`."""
    return {
        "processor": plan.site.processor,
        "compression": plan.site.compression,
        "packing": FORMAT,
        "base image": baseimage.local_digest(plan) or inputs.digest,
    }


def cached_steps(plan: Plan, inputs: Inputs, store: Store) -> CachedSteps:
    """The cache as builds of this image see it."""
    around = _surroundings(plan, inputs)
    return CachedSteps(store=store, surroundings=around, record=inputs.record)


@contextmanager
def making(task: Task) -> Iterator[Made]:
    """Write image.sif from the results of all steps, whenever they were made.

    What the steps ran in may still be being removed inside, and is gone afterwards.
    Raises `BuildError` where a step fails; the steps before it stay for the next build.
    """
    with _store(task) as store, workspace(host_checks.temporary_root()) as work, _aside() as aside:
        cached = cached_steps(task.plan, task.inputs, store)
        first = len(cached.leading(task.plan))
        with _fetching(task, range(first, len(task.plan.steps)), work) as downloads:
            sandbox = _sandbox(task, work, aside, downloads)
            made = _made(task, _steps(task, cached, sandbox, reads_all=task.layout == "flat"), work)
        yield made
        if sandbox.is_clearing:
            task.watcher.timer.start("clean up")


def _aside() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "aside")


def _fetching(task: Task, steps: range, work: Path) -> AbstractContextManager[Ahead | None]:
    """Download for the steps of these numbers; not where nothing is to be kept."""
    if not task.cached:
        return nullcontext()
    note = task.watcher.progress.note
    return ahead.fetching(task.plan, steps, work=work, log=task.log, note=note)


def _made(task: Task, steps: Steps, work: Path) -> Made:
    while True:
        with steps.results() as results, workspace(work) as scratch:
            steps.sandbox.discard()
            task.watcher.timer.start("assemble")
            try:
                digest = assemble(task, results, scratch, steps.is_checked)
            except PartitionError:
                if not steps.drop_damaged(results):
                    raise
                continue
            sources = [one for entry in results for one in used(entry)]
            compression = task.plan.site.compression
            # Not the entries' names: a layer shares results with one that does the same.
            names = (step.layer.name for step in task.plan.steps)
            keys = dict(zip(names, (entry.key for entry in results), strict=True))
            return Made(keys=keys, used=sources, compression=compression, fingerprint=digest)


def open_shell(task: Task, layer: str) -> int:
    """Open a shell in the state before a layer's step, with its options set; its exit status.

    Steps before it that are not cached are run. Raises `UsageError` for a layer without a state
    before it.
    """
    number = _number(task.plan, layer)
    if why_not := obstacle(task.engine, task.plan):
        fix = "Mend that, or use another machine; 'sifwright build' needs none of it."
        raise MachineError.of(f"no step can be entered here: {why_not}", fix=fix)
    with _store(task) as store, workspace(host_checks.temporary_root()) as work:
        cached = cached_steps(task.plan, task.inputs, store)
        first = min(len(cached.leading(task.plan)), number)
        with (
            _aside() as aside,
            _fetching(task, range(first, number + 1), work) as downloads,
        ):
            sandbox = _sandbox(task, work, aside, downloads)
            steps = _steps(task, cached, sandbox, reads_all=True)
            with steps.results(number) as below:
                command = steps.shell(below, work)
                task.watcher.timer.finish("done")
                task.watcher.progress.note(_HINT.format(layer=layer))
                return runner.interact(command, env=task.environment(work))


def _number(plan: Plan, layer: str) -> int:
    names = [step.layer.name for step in plan.steps]
    if layer not in names:
        raise UsageError.of(
            f"image '{plan.image.name}' has no layer '{layer}'", fix=did_you_mean(layer, names)
        )
    if layer == names[0]:
        raise UsageError.of(
            f"there is nothing before '{layer}', the first layer", fix="Name a later one."
        )
    return names.index(layer)


@contextmanager
def _store(task: Task) -> Iterator[Store]:
    """The user's cache; without it, one that is gone afterwards."""
    if task.cached:
        store = Store.open(note=task.watcher.progress.note)
        store.reclaim()
        yield store
        return
    with workspace(host_checks.temporary_root()) as root:
        location.make(root)
        yield Store(root=root)


def _sandbox(task: Task, work: Path, aside: Executor, downloads: Ahead | None) -> Sandbox:
    return Sandbox(
        plan=task.plan,
        base=base_definition(task.plan, task.header),
        mirror=task.header.get("debian-mirror", ""),
        engine=task.engine,
        settings=task.settings,
        environment=task.environment(work),
        watcher=task.watcher,
        log=task.log,
        temporary=work,
        downloads=downloads,
        aside=aside,
    )


def _steps(task: Task, cached: CachedSteps, sandbox: Sandbox, *, reads_all: bool) -> Steps:
    return Steps(
        plan=task.plan,
        cached=cached,
        sandbox=sandbox,
        compression=task.plan.site.compression,
        reads_all=reads_all,
    )
