"""Run the steps of a plan one by one, each on what those before it made, and keep what each made.

A step's result is a squashfs file of what it changed. It is cached under a key of all that decides
it (stepkey.py), so that a build runs only what is not there yet.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sifwright import keptfiles, stepkey
from sifwright.render import buildfiles
from sifwright.squash.pack import LISTING, Live, Packed, Packing, pack
from sifwright.store.claims import claim
from sifwright.store.leases import lease
from sifwright.workspace import workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sifwright.cachedsteps import CachedSteps
    from sifwright.model import Plan
    from sifwright.sandbox import Ran, Sandbox
    from sifwright.store.store import Entry
    from sifwright.watcher import Watcher

__all__ = ["Steps"]


class _Damaged(Exception):
    """A cached result turned out not to be what was stored, and was dropped."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Steps:
    """The steps of a plan, whose results are looked up or made.

    `cached` leads to results that are there, `sandbox` runs what is not. `reads_all`: the results
    will be read by what does not compare them with their digests.
    """

    plan: Plan
    cached: CachedSteps
    sandbox: Sandbox
    compression: str
    reads_all: bool
    checked: set[str] = field(default_factory=set)

    @contextmanager
    def results(self, count: int | None = None) -> Iterator[list[Entry]]:
        """Yield the results of all steps, or the first so many; nobody prunes them inside.

        Raises `BuildError` where a step fails; what was made before stays for the next build.
        """
        while True:
            with ExitStack() as stack:
                try:
                    found = self._all(stack, count)
                except _Damaged:
                    continue
                yield found
                return

    def _all(self, stack: ExitStack, count: int | None) -> list[Entry]:
        found: list[Entry] = []
        before = len(self.checked)
        for number, step in enumerate(self.plan.steps[:count]):
            key = self.cached.key(step, found)
            # Before it is looked for: a prune leaves it alone from now on.
            stack.enter_context(lease(self.cached.store, [key]))
            self._watcher.timer.start(step.layer.name)
            if entry := self.cached.store.peek(key):
                self.cached.store.touch(entry)
            found.append(entry or self._shared(number, key, found))
            self._watcher.timer.finish("cached" if entry else "done")
        if self.reads_all:
            if len(self.checked) > before:
                # A step ran, for hours maybe.
                self.checked.clear()
            self._check(found)
        return found

    def _shared(self, number: int, key: str, below: Sequence[Entry]) -> Entry:
        """Make the result, or wait for whoever is making it."""
        name = self.plan.steps[number].layer.name

        def tell(owner: str) -> None:
            self._watcher.progress.note(f"waiting for layer '{name}', which is built by {owner}")

        while True:
            with claim(self.cached.store, key, on_wait=tell) as ours:
                if ours:
                    return self._make(number, key, below)
            if entry := self.cached.store.peek(key):
                return entry

    def _make(self, number: int, key: str, below: Sequence[Entry]) -> Entry:
        since, first = time.monotonic(), len(self._watcher.used)
        self._check(below)
        with workspace(self.sandbox.temporary) as work, self.cached.store.folder() as made:
            ran, packed = self._ran(number, below, work, made)
            facts = self._facts(number, ran, below)
            facts["used"] = [asdict(one) for one in self._watcher.used[first:]]
            facts["unpacked"] = {"entries": packed.entries, "bytes": packed.bytes}
            facts["capabilities"] = packed.capabilities
            facts["seconds"] = round(time.monotonic() - since, 3)
            entry = self.cached.store.put(key, made, facts)
            self.checked.add(key)
            if isinstance(ran.changes, Live) and not made.exists():
                # Else somebody was first, and theirs need not be what is in our tree.
                self.sandbox.keep(entry)
            return entry

    def _ran(
        self, number: int, below: Sequence[Entry], work: Path, made: Path
    ) -> tuple[Ran, Packed]:
        """Run a step and pack what it changed.

        Through squashfuse 0.1.105, fuse-overlayfs can neither copy up nor remove a file with
        capabilities; what else an overlay may get wrong is seen afterwards.
        """
        first = len(self._watcher.used)
        in_tree = any(entry.manifest["capabilities"] for entry in below)
        ran = self.sandbox.run(number, below, _folder(work / "1"), in_tree=in_tree)
        packed = self._pack(ran, below, made)
        if packed.doubts and not isinstance(ran.changes, Live):
            name = self.plan.steps[number].layer.name
            what = f"layer '{name}' runs again, without an overlay, because of {packed.doubts}"
            self._watcher.progress.note(what)
            del self._watcher.used[first:]
            ran = self.sandbox.run(number, below, _folder(work / "2"), in_tree=True)
            packed = self._pack(ran, below, made)
        return ran, packed

    def _pack(self, ran: Ran, below: Sequence[Entry], made: Path) -> Packed:
        how = Packing(compression=self.compression, log=self.sandbox.log)
        lower = [entry.file(LISTING) for entry in below]
        return pack(ran.changes, made, how, lower=lower, exclude=[buildfiles.BUILD])

    def drop_damaged(self, results: Sequence[Entry]) -> bool:
        """Read every byte of these; whether any was damaged, and so dropped from the cache."""
        sound = {entry.key for entry in results if self.cached.store.get(entry.key)}
        self.checked.update(sound)
        return len(sound) < len(results)

    def _check(self, results: Sequence[Entry]) -> None:
        """Before they are relied on, read once in a build what is not compared elsewhere."""
        if self.drop_damaged([entry for entry in results if entry.key not in self.checked]):
            raise _Damaged

    def _facts(self, number: int, ran: Ran, below: Sequence[Entry]) -> dict[str, object]:
        step = self.plan.steps[number]
        return {
            "layer": step.layer.name,
            "step": step.id,
            "below": below[-1].key if below else "",
            "site": self.plan.site.name,
            "image": self.plan.image.name,
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "inputs": stepkey.inputs(step, self.cached.surroundings),
            "mirror": self.sandbox.mirror,
            "kept": keptfiles.read(ran.build),
            "folders": keptfiles.modes(ran.tree),
            **({} if below else {"metadata": asdict(keptfiles.base_metadata(ran.tree))}),
        }

    @property
    def _watcher(self) -> Watcher:
        return self.sandbox.watcher


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
