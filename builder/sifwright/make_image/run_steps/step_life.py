"""The life of a step: its result comes from the cache, or the step runs and its result is stored.

The states of a step, and what leads to each:

    cached   the entry is there: nothing runs. The key is leased first, so that no
             prune removes the entry (`result`)
    waiting  another build has the claim of the key (`_make_or_wait`); then the step is
             cached, or runs here if the other build has failed
    running  the claim is ours: the step runs in the tree that the step before has left,
             else on an overlay of the results below, or in a tree of them where an
             overlay would be wrong (`avoid_overlay`). Meanwhile these results are read
             and checked (`_being_checked`). If the step fails, nothing is stored
    packed   what it changed is a squashfs file (`_try`); if an overlay may be wrong
             there, the step runs again in a tree (`_run_and_pack`)
    stored   the entry is put under its key, with its facts (`_make`)
    damaged  a result below is not what was stored: it is dropped (`drop_damaged`),
             and the first step is looked up again (`run_steps` in step_engine.py)

The key covers all that decides the result (step_keys.py).
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sifwright.errors import BuildError, SifwrightError
from sifwright.make_image.cache.claims import claim
from sifwright.make_image.cache.leases import lease
from sifwright.make_image.cache.store import CacheEntry
from sifwright.make_image.pack_layers.pack import LISTING, PackedLayer, PackOptions, WorkTree, pack
from sifwright.make_image.resolve_request.build_context import BuildContext
from sifwright.make_image.resolve_request.output_parser import OutputParser
from sifwright.make_image.run_steps import build_folder, step_keys
from sifwright.make_image.run_steps.run_in_apptainer import Sandbox, StepRun
from sifwright.make_image.run_steps.step_engine import DamagedResultError
from sifwright.make_image.run_steps.step_keys import CachedSteps
from sifwright.system import ids
from sifwright.system.tempdirs import remove, workspace

# Seconds for which a result counts as checked.
_MOMENT = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class StepResults:
    """The steps of a plan, with results that are looked up or made.

    `cached` leads to results that are there, `sandbox` runs the other steps. `leases` keep results
    from being pruned; the caller ends them.
    """

    context: BuildContext
    cached: CachedSteps
    sandbox: Sandbox
    leases: ExitStack
    _checked: dict[str, float] = field(default_factory=dict, init=False)
    _damaged: set[str] = field(default_factory=set, init=False)

    def result(self, number: int, below: Sequence[CacheEntry]) -> CacheEntry:
        """Return the result of a step on those of the steps before it.

        Raises `BuildError` if the step fails, `DamagedResultError` if a result below was damaged.
        """
        step = self.context.plan.steps[number]
        key = self.cached.key(step, below)
        # Before it is looked for: a prune leaves it alone from now on.
        self.leases.enter_context(lease(self.cached.store, [key]))
        self._watcher.timer.start(step.layer.name)
        entry, is_new = self.cached.store.peek(key), False
        if entry:
            self.cached.store.touch(entry)
        else:
            entry, is_new = self._make_or_wait(number, key, below)
        self._watcher.timer.finish("done" if is_new else "cached")
        return entry

    def _make_or_wait(
        self, number: int, key: str, below: Sequence[CacheEntry]
    ) -> tuple[CacheEntry, bool]:
        """Make the result, or wait for the build that makes it; return whether we made it."""
        waiting = f"waiting for layer '{self.context.plan.steps[number].layer.name}'"

        def tell(owner: str) -> None:
            self._watcher.progress.note(f"{waiting}, which is built by {owner}")

        while True:
            with claim(self.cached.store, key, on_wait=tell) as ours:
                if ours:
                    return self._make(number, key, below), True
            if entry := self.cached.store.peek(key):
                return entry, False

    def _make(self, number: int, key: str, below: Sequence[CacheEntry]) -> CacheEntry:
        since = time.monotonic()
        with workspace(self.context.work_dir) as work_dir, self.cached.store.folder() as staging:
            with self._being_checked(below):
                step_run, packed = self._run_and_pack(number, below, work_dir, staging)
            self._refuse_changed_base(number)
            facts = self._facts(below, step_run, packed, since)
            entry, is_ours = self.cached.store.put(key, staging, facts)
            self._checked[key] = time.monotonic()
            if is_ours and isinstance(step_run.changes, WorkTree):
                # Else another build was first, and its result may differ from our tree.
                self.sandbox.adopt_tree(entry)
            return entry

    def _refuse_changed_base(self, number: int) -> None:
        """Raise `BuildError` if the base image has changed since the build began.

        After step 0, read the file in full: a failing disk changes no timestamp.
        """
        expected = self.cached.build_environment["base image"]
        digest = self.context.base.local_digest(from_disk=number == 0)
        if digest and digest != expected:
            message = "was changed while the image was built from it"
            raise BuildError.of(message, where=self.context.base.name, fix="Build again.")

    def _run_and_pack(
        self, number: int, below: Sequence[CacheEntry], work_dir: Path, staging: Path
    ) -> tuple[StepRun, PackedLayer]:
        """Run a step and pack what it changed; what an overlay may get wrong is seen then."""
        self.avoid_overlay(below)
        step_run, packed = self._try(below, work_dir / "1", staging)
        if packed.doubts and not isinstance(step_run.changes, WorkTree):
            name = self.context.plan.steps[number].layer.name
            message = f"layer '{name}' runs again, without an overlay, because of {packed.doubts}"
            self._watcher.progress.note(message)
            # The second run needs the room.
            remove(work_dir / "1")
            self.sandbox.unpack(below, packed.unpacked)
            return self._try(below, work_dir / "2", staging)
        return step_run, packed

    def _try(
        self, below: Sequence[CacheEntry], work_dir: Path, staging: Path
    ) -> tuple[StepRun, PackedLayer]:
        work_dir.mkdir()
        self._watcher.used.clear()
        step_run = self.sandbox.run(below, work_dir)
        how = PackOptions(
            compression=self.context.plan.site.compression,
            log=self.context.log,
            fix=self.context.watcher.fix,
            owners=self.sandbox.owners,
            epoch=self.context.options.epoch,
        )
        lower, left_out = [entry.file(LISTING) for entry in below], build_folder.LEFT_OUT
        return step_run, pack(step_run.changes, staging, how, lower=lower, exclude=left_out)

    def avoid_overlay(self, below: Sequence[CacheEntry]) -> None:
        """Unpack these results if one has a file with capabilities, and say so.

        Through squashfuse 0.1.105, fuse-overlayfs can neither copy up nor remove such a file. With
        one id there is no overlay at all. The supervisor that records the owners also serves the
        driver, so it cannot wait for the driver.
        """
        names = [step.layer.name for step in self.context.plan.steps]
        pairs = zip(names, below, strict=False)
        capable = next((name for name, entry in pairs if entry.manifest["capabilities"]), "")
        if not below or not (capable or ids.are_one()) or self.sandbox.tree_matches(below):
            return
        if not ids.are_one():
            message = (
                f"layer '{names[len(below)]}' runs without an overlay, because of capabilities"
            )
            self._watcher.progress.note(f"{message} of files of layer '{capable}'")
        self.sandbox.unpack(below, 0)

    def drop_damaged(self, results: Sequence[CacheEntry]) -> bool:
        """Read every byte of these; whether any was damaged, and so dropped from the cache.

        Raises `BuildError` at the second time for the same one: made again and again, it would be
        damaged each time.
        """
        now = time.monotonic()
        bad = [entry for entry in results if self.cached.store.get(entry.key) is None]
        self._checked.update((entry.key, now) for entry in results if entry not in bad)
        for entry in bad:
            if entry.key in self._damaged:
                raise BuildError.of(
                    f"what layer '{entry.manifest['layer']}' made was damaged twice in this build",
                    where=str(entry.folder),
                    fix="Check the disk, or choose another folder with SIFWRIGHT_CACHE.",
                )
        self._damaged.update(entry.key for entry in bad)
        return bool(bad)

    def is_checked(self, entry: CacheEntry) -> bool:
        """Return whether every byte was compared a moment ago, not before a step of hours."""
        return time.monotonic() - self._checked.get(entry.key, -_MOMENT) < _MOMENT

    def check(self, results: Sequence[CacheEntry]) -> None:
        """Read every byte of results; raise `DamagedResultError` if one was damaged."""
        if self.drop_damaged([entry for entry in results if not self.is_checked(entry)]):
            raise DamagedResultError

    @contextmanager
    def _being_checked(self, results: Sequence[CacheEntry]) -> Iterator[None]:
        """Verify inputs in parallel; a damaged input overrides the step's own error.

        To read gigabytes can take longer than the step.
        """
        with ThreadPoolExecutor(1) as thread:
            checking = thread.submit(self.check, results)
            try:
                yield
            except SifwrightError:
                checking.result()
                raise
            checking.result()

    def _facts(
        self, below: Sequence[CacheEntry], step_run: StepRun, packed: PackedLayer, since: float
    ) -> dict[str, object]:
        plan = self.context.plan
        step = plan.steps[len(below)]
        return {
            "layer": step.layer.name,
            "step": step.id,
            "below": below[-1].key if below else "",
            "site": plan.site.name,
            "image": plan.image.name,
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "inputs": step_keys.step_inputs(step, self.cached.build_environment),
            "mirrors": build_folder.mirrors(self.context.header),
            "kept": step_run.kept,
            "folders": build_folder.modes(step_run.tree),
            "used": [asdict(source) for source in self._watcher.used],
            "unpacked": {"entries": packed.entries, "bytes": packed.bytes},
            "capabilities": packed.capabilities,
            "seconds": round(time.monotonic() - since, 3),
            **({} if below else {"metadata": asdict(build_folder.base_metadata(step_run.tree))}),
        }

    @property
    def _watcher(self) -> OutputParser:
        return self.context.watcher
