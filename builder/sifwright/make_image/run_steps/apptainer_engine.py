"""Steps that Apptainer runs one by one, with a cache of their results."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from sifwright.host.engines.apptainer import Apptainer
from sifwright.images.sif.fingerprint import Digests
from sifwright.images.sif.write_sif import PartitionError
from sifwright.make_image.assemble_sif.assemble import assemble
from sifwright.make_image.cache.store import CacheEntry, Store
from sifwright.make_image.downloads import prefetch
from sifwright.make_image.resolve_request.build_context import BuildContext
from sifwright.make_image.run_steps.run_in_apptainer import Sandbox
from sifwright.make_image.run_steps.sif_engine import SifEngine
from sifwright.make_image.run_steps.step_engine import Artifact, DamagedResultError
from sifwright.make_image.run_steps.step_keys import CachedSteps
from sifwright.make_image.run_steps.step_life import StepResults
from sifwright.system import cache_folder, threads
from sifwright.system.tempdirs import temporary_root, workspace


@dataclass(kw_only=True)
class ApptainerSteps(SifEngine):
    """The step engine that runs uncached steps, and assembles a SIF of all results."""

    step_results: StepResults

    def run(self, number: int, below: Sequence[CacheEntry]) -> CacheEntry:
        return self.step_results.result(number, below)

    def finish(self, results: Sequence[CacheEntry]) -> Artifact:
        """Write image.sif; raises `DamagedResultError` for a result that the disk has changed."""
        if self.context.options.layout == "flat":
            # Joining does not compare them with their digests.
            self.step_results.check(results)
        self.step_results.sandbox.remove_tree()
        self.context.watcher.timer.start("assemble")
        return self.artifact(
            keys=[entry.key for entry in results],
            used=[source for entry in results for source in entry.sources],
            digests=self._assemble(results),
            compression=self.context.plan.site.compression,
        )

    def _assemble(self, results: Sequence[CacheEntry]) -> Digests:
        with workspace(self.context.work_dir) as scratch:
            try:
                return assemble(self.context, results, scratch, self.step_results.is_checked)
            except PartitionError as error:
                if self.step_results.drop_damaged(results):
                    raise DamagedResultError from error
                raise

    def shell(self, below: Sequence[CacheEntry]) -> list[str]:
        """Return the command that opens a shell where the step after these would begin."""
        self.step_results.check(below)
        self.step_results.avoid_overlay(below)
        return self.step_results.sandbox.shell(below, self.context.work_dir)


@contextmanager
def open_engine(
    context: BuildContext, apptainer: Apptainer, before: int | None = None
) -> Iterator[ApptainerSteps]:
    """Yield the engine for all steps, or for a shell before the step of this number."""
    with (
        _open_store(context) as store,
        ThreadPoolExecutor(1, "background") as background,
        ExitStack() as leases,
    ):
        if before is None:
            threads.start(_load_sbom)
        cached = CachedSteps.of(context.plan.site, context.inputs, store)
        first, count = len(cached.leading(context.plan)), len(context.plan.steps)
        steps = range(first, count) if before is None else range(min(first, before), before + 1)
        # A build that keeps nothing fetches ahead the files of a lock only, which its cache has.
        ahead = steps if context.options.cached or context.options.files else range(0)
        with prefetch.fetching(
            context.plan,
            ahead,
            work_dir=context.work_dir,
            log=context.log,
            note=context.watcher.progress.note,
        ) as downloads:
            sandbox = Sandbox(
                context=context, engine=apptainer, downloads=downloads, background=background
            )
            step_results = StepResults(
                context=context, cached=cached, sandbox=sandbox, leases=leases
            )
            yield ApptainerSteps(context=context, apptainer=apptainer, step_results=step_results)
        if sandbox.is_removing:
            context.watcher.timer.start("clean up")


def _load_sbom() -> None:
    """Import CycloneDX, which takes 0.4 s, before the image is assembled."""
    from sifwright.make_image.attest import sbom  # noqa: F401, PLC0415  # beside the first steps


@contextmanager
def _open_store(context: BuildContext) -> Iterator[Store]:
    """Yield the user's cache; without it, one that is removed afterwards."""
    if context.options.cached:
        yield Store.open(note=context.watcher.progress.note)
        return
    with workspace(temporary_root()) as root:
        yield Store(root=cache_folder.make(root))
