"""Build an image step by step: run what is not in the cache, and put the results together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from sifwright.build.cache.store import Store
from sifwright.build.checks import host_checks
from sifwright.build.downloads import prefetch
from sifwright.build.layers.pack import FORMAT
from sifwright.build.request import base_image
from sifwright.build.request.build_context import BuiltSif
from sifwright.build.steps import build_folder
from sifwright.build.steps.assemble import assemble
from sifwright.build.steps.cached_steps import CachedSteps, used
from sifwright.build.steps.sandbox import Sandbox
from sifwright.build.steps.step_runner import StepRunner
from sifwright.catalog.schema import did_you_mean
from sifwright.errors import MachineError, UsageError
from sifwright.host.engines import apptainer_config
from sifwright.images.sif.layout import MAXIMUM_OVERLAYS
from sifwright.images.sif.write_sif import PartitionError
from sifwright.render.definition import base_definition
from sifwright.system import cache_folder, ids, processes, user_namespace
from sifwright.system.tempdirs import workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sifwright.build.downloads.prefetch import Prefetcher
    from sifwright.build.request.build_context import BuildContext
    from sifwright.build.request.inputs import Inputs
    from sifwright.host.engines.apptainer import Apptainer
    from sifwright.plan.model import Plan

__all__ = ["built_sif", "cached_steps", "open_shell", "why_not_stepwise"]

_HINT = "before layer '{layer}': bash install.sh runs it; what you change is gone after 'exit'"


def why_not_stepwise(engine: Apptainer, plan: Plan) -> str:
    """Why steps cannot be run one by one here; empty if they can."""
    if len(plan.steps) > MAXIMUM_OVERLAYS:
        return f"it has {len(plan.steps)} layers, and {MAXIMUM_OVERLAYS} can be stacked"
    if engine.product != "apptainer":
        return f"{engine.product} is not known to run steps on overlays"
    if engine.compression(plan.site.compression) != plan.site.compression:
        return f"{engine.product} {engine.version} opens no squashfs of {plan.site.compression}"
    if not apptainer_config.allows_overlays(engine):
        return "overlays are switched off ('enable overlay = no' in apptainer.conf)"
    problem = user_namespace.problem()
    return problem.what if problem else ""


def _surroundings(plan: Plan, inputs: Inputs) -> dict[str, str]:
    """What decides the bytes of every step beside the plan; see `stepkey.key`.

    What a step makes with one uid is the same, unless something in it did without another one.
    """
    return {
        **({"ids": "one"} if ids.are_one() else {}),
        "processor": plan.site.processor,
        "compression": plan.site.compression,
        "packing": FORMAT,
        "base image": base_image.local_digest(plan) or inputs.digest,
    }


def cached_steps(plan: Plan, inputs: Inputs, store: Store) -> CachedSteps:
    """The cache as builds of this image see it."""
    around = _surroundings(plan, inputs)
    return CachedSteps(store=store, surroundings=around, record=inputs.record)


@contextmanager
def built_sif(context: BuildContext) -> Iterator[BuiltSif]:
    """Write image.sif from the results of all steps, whenever they were made.

    What the steps ran in may still be being removed inside, and is gone afterwards.
    Raises `BuildError` where a step fails; the steps before it stay for the next build.
    """
    with (
        _store(context) as store,
        workspace(host_checks.temporary_root()) as work,
        _aside() as aside,
    ):
        cached = cached_steps(context.plan, context.inputs, store)
        first = len(cached.leading(context.plan))
        with _fetching(context, range(first, len(context.plan.steps)), work) as downloads:
            sandbox = _sandbox(context, work, aside, downloads)
            made = _made(
                context, _steps(context, cached, sandbox, reads_all=context.layout == "flat"), work
            )
        yield made
        if sandbox.is_clearing:
            context.watcher.timer.start("clean up")


def _aside() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "aside")


def _fetching(
    context: BuildContext, steps: range, work: Path
) -> AbstractContextManager[Prefetcher | None]:
    """Download for the steps of these numbers; not where nothing is to be kept."""
    if not context.cached:
        return nullcontext()
    note = context.watcher.progress.note
    return prefetch.fetching(context.plan, steps, work=work, log=context.log, note=note)


def _made(context: BuildContext, steps: StepRunner, work: Path) -> BuiltSif:
    while True:
        with steps.results() as results, workspace(work) as scratch:
            steps.sandbox.discard()
            context.watcher.timer.start("assemble")
            try:
                digest = assemble(context, results, scratch, steps.is_checked)
            except PartitionError:
                if not steps.drop_damaged(results):
                    raise
                continue
            sources = [one for entry in results for one in used(entry)]
            compression = context.plan.site.compression
            # Not the entries' names: a layer shares results with one that does the same.
            names = (step.layer.name for step in context.plan.steps)
            keys = dict(zip(names, (entry.key for entry in results), strict=True))
            return BuiltSif(keys=keys, used=sources, compression=compression, fingerprint=digest)


def open_shell(context: BuildContext, layer: str) -> int:
    """Open a shell in the state before a layer's step, with its options set; its exit status.

    Steps before it that are not cached are run. Raises `UsageError` for a layer without a state
    before it.
    """
    number = _number(context.plan, layer)
    if why_not := why_not_stepwise(context.engine, context.plan):
        fix = "Mend that, or use another machine; 'sifwright build' needs none of it."
        raise MachineError.of(f"no step can be entered here: {why_not}", fix=fix)
    with _store(context) as store, workspace(host_checks.temporary_root()) as work:
        cached = cached_steps(context.plan, context.inputs, store)
        first = min(len(cached.leading(context.plan)), number)
        with (
            _aside() as aside,
            _fetching(context, range(first, number + 1), work) as downloads,
        ):
            sandbox = _sandbox(context, work, aside, downloads)
            steps = _steps(context, cached, sandbox, reads_all=True)
            with steps.results(number) as below:
                command = steps.shell(below, work)
                context.watcher.timer.finish("done")
                context.watcher.progress.note(_HINT.format(layer=layer))
                return processes.interact(command, env=context.environment(work))


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
def _store(context: BuildContext) -> Iterator[Store]:
    """The user's cache; without it, one that is gone afterwards."""
    if context.cached:
        store = Store.open(note=context.watcher.progress.note)
        store.reclaim()
        yield store
        return
    with workspace(host_checks.temporary_root()) as root:
        cache_folder.make(root)
        yield Store(root=root)


def _sandbox(
    context: BuildContext, work: Path, aside: Executor, downloads: Prefetcher | None
) -> Sandbox:
    return Sandbox(
        plan=context.plan,
        base=base_definition(context.plan, context.header),
        mirrors=build_folder.mirrors(context.header),
        engine=context.engine,
        settings=context.settings,
        environment=context.environment(work),
        watcher=context.watcher,
        log=context.log,
        temporary=work,
        downloads=downloads,
        aside=aside,
    )


def _steps(
    context: BuildContext, cached: CachedSteps, sandbox: Sandbox, *, reads_all: bool
) -> StepRunner:
    return StepRunner(
        plan=context.plan,
        cached=cached,
        sandbox=sandbox,
        compression=context.plan.site.compression,
        reads_all=reads_all,
    )
