"""Run the steps of a plan one by one, each on what those before it made, and keep what each made.

A step's result is a squashfs file of what it changed. It is cached under a key of all that decides
it (stepkey.py), so that a build runs only what is not there yet.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import keptfiles, prefetch, runner, stepkey
from sifwright.errors import BuildError
from sifwright.render import buildfiles
from sifwright.squash.pack import LISTING, SQUASHFS, Packing, pack
from sifwright.store.claims import claim
from sifwright.store.leases import lease
from sifwright.workspace import workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sifwright.cachedsteps import CachedSteps
    from sifwright.engines.apptainer import Apptainer
    from sifwright.machine import Settings
    from sifwright.model import Plan
    from sifwright.store.store import Entry
    from sifwright.watcher import Watcher

__all__ = ["Steps"]


class _Damaged(Exception):
    """A cached result turned out not to be what was stored, and was dropped."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Steps:
    """What running the steps takes.

    `base` is the definition file of the first step, `cached` leads to results that are there,
    `mirror` is where this machine finds Debian's packages, `environment` the engine's. Steps write
    below `temporary` before their changes are packed. `reads_all`: the results will be read by what
    does not compare them with their digests. `pip_cache` is the folder of pip's downloads, if any.
    """

    plan: Plan
    base: str
    cached: CachedSteps
    mirror: str
    compression: str
    engine: Apptainer
    settings: Settings
    environment: Mapping[str, str]
    watcher: Watcher
    log: Path
    temporary: Path
    reads_all: bool
    pip_cache: Path | None
    checked: set[str] = field(default_factory=set)
    live: dict[str, Path] = field(default_factory=dict)

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

    @property
    def trees(self) -> Path:
        """Where the trees stay that steps of this build have left."""
        return self.temporary / "trees"

    def shell(self, work: Path, below: Sequence[Entry]) -> list[str]:
        """The command that opens a shell where the step after these would begin."""
        command, _ = self._prepared(work, len(below), below, "shell")
        return command

    def _all(self, stack: ExitStack, count: int | None) -> list[Entry]:
        found: list[Entry] = []
        for number, step in enumerate(self.plan.steps[:count]):
            key = self.cached.key(step, found)
            # Before it is looked for: a prune leaves it alone from now on.
            stack.enter_context(lease(self.cached.store, [key]))
            self.watcher.timer.start(step.layer.name)
            if entry := self.cached.store.peek(key):
                self.cached.store.touch(entry)
            found.append(entry or self._shared(number, key, found))
            self.watcher.timer.finish("cached" if entry else "done")
        if self.reads_all:
            self._check(found)
        return found

    def _shared(self, number: int, key: str, below: Sequence[Entry]) -> Entry:
        """Make the result, or wait for whoever is making it."""
        name = self.plan.steps[number].layer.name

        def tell(owner: str) -> None:
            self.watcher.progress.note(f"waiting for layer '{name}', which is built by {owner}")

        while True:
            with claim(self.cached.store, key, on_wait=tell) as ours:
                if ours:
                    return self._make(number, key, below)
            if entry := self.cached.store.peek(key):
                return entry

    def _make(self, number: int, key: str, below: Sequence[Entry]) -> Entry:
        since, first = time.monotonic(), len(self.watcher.used)
        self._check(below)
        with self._work(below) as work, self.cached.store.folder() as made:
            tree, build = self._step(work, number, below) if number else self._base(work)
            facts = self._facts(number, build, below)
            facts["folders"] = keptfiles.modes(tree)
            facts |= {} if number else _of_base(tree)
            how = Packing(compression=self.compression, log=self.log)
            lower = [entry.file(LISTING) for entry in below]
            packed = pack(tree, made, how, lower=lower, exclude=[buildfiles.BUILD])
            facts["used"] = [asdict(one) for one in self.watcher.used[first:]]
            facts["unpacked"] = {"entries": packed.entries, "bytes": packed.bytes}
            facts["seconds"] = round(time.monotonic() - since, 3)
            entry = self.cached.store.put(key, made, facts)
            self.checked.add(key)
            if work.parent == self.trees:
                self.live[entry.digest(SQUASHFS)] = tree
            return entry

    @contextmanager
    def _work(self, below: Sequence[Entry]) -> Iterator[Path]:
        """A folder for a step; it stays where the trees of all steps will be put together."""
        if self.reads_all and len(self._live(below)) == len(below):
            self.trees.mkdir(exist_ok=True)
            yield Path(tempfile.mkdtemp(dir=self.trees))
            return
        with workspace(self.temporary) as work:
            yield work

    def _live(self, results: Sequence[Entry]) -> list[Path]:
        """The folders that these were packed from, as far as they are still there."""
        digests = (entry.digest(SQUASHFS) for entry in results)
        return [self.live[digest] for digest in digests if digest in self.live]

    def take_trees(self, results: Sequence[Entry]) -> list[Path]:
        """The folders that these were packed from, to be used up; empty if not all are there."""
        found = self._live(results)
        self.live.clear()
        return found if len(found) == len(results) else []

    def drop_damaged(self, results: Sequence[Entry]) -> bool:
        """Read every byte of these; whether any was damaged, and so dropped from the cache."""
        sound = {entry.key for entry in results if self.cached.store.get(entry.key)}
        self.checked.update(sound)
        return len(sound) < len(results)

    def _check(self, results: Sequence[Entry]) -> None:
        """Before they are relied on, read once in a build what is not compared elsewhere."""
        if self.drop_damaged([entry for entry in results if entry.key not in self.checked]):
            raise _Damaged

    def _facts(self, number: int, build: Path, below: Sequence[Entry]) -> dict[str, object]:
        step = self.plan.steps[number]
        return {
            "layer": step.layer.name,
            "step": step.id,
            "below": below[-1].key if below else "",
            "site": self.plan.site.name,
            "image": self.plan.image.name,
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "inputs": stepkey.inputs(step, self.cached.surroundings),
            "mirror": self.mirror,
            "kept": keptfiles.read(build),
        }

    def _base(self, work: Path) -> tuple[Path, Path]:
        """Make the first step's tree; the build's own folder is in it."""
        definition, tree = work / "base.def", work / "tree"
        definition.write_text(self.base)
        self._run(self.engine.sandbox_command(definition, tree, binds=self.settings.binds), work)
        return tree, tree / buildfiles.BUILD.lstrip("/")

    def _step(self, work: Path, number: int, below: Sequence[Entry]) -> tuple[Path, Path]:
        """Run a later step; returns its changes and the build's own folder."""
        command, build = self._prepared(work, number, below, "run")
        self._run(command, work)
        return work / "overlay" / "upper", build

    def _prepared(
        self, work: Path, number: int, below: Sequence[Entry], script: str
    ) -> tuple[list[str], Path]:
        """The command that runs a script of the build's own folder, which is made here.

        The folder is bound, so that nothing of it is in the changes.
        """
        overlay, build = work / "overlay", work / "build"
        overlay.mkdir()
        machine = Path(self.settings.env["SIFWRIGHT_MACHINE"])
        keptfiles.prepare(build, self.plan, number, machine, self._kept(below[-1]))
        layers = [entry.file(SQUASHFS) for entry in below]
        binds = [f"{build}:{buildfiles.BUILD}", *self.settings.binds, *self._pip_cache(build)]
        inside = f"{buildfiles.BUILD}/{script}"
        return self.engine.step_command(layers, overlay, inside, binds=binds), build

    def _pip_cache(self, build: Path) -> list[str]:
        """What pip downloads, downloaded once; it compares it with the index's digests."""
        if self.pip_cache is None:
            return []
        # Not the wheels that pip builds: it knows them by name, not by what they are built on.
        (build / "pip" / prefetch.DOWNLOADS).mkdir(parents=True)
        inside = f"{buildfiles.BUILD}/pip/{prefetch.DOWNLOADS}"
        return [f"{self.pip_cache / prefetch.DOWNLOADS}:{inside}"]

    def _kept(self, below: Entry) -> dict[str, str]:
        """What earlier layers left, with this machine's mirror in place of the one they used."""
        old, kept = below.manifest["mirror"], dict(below.manifest["kept"])
        if old and self.mirror:
            kept = {name: text.replace(old, self.mirror) for name, text in kept.items()}
        return kept

    def _run(self, command: list[str], work: Path) -> None:
        folder = str(work)
        own = {"APPTAINER_TMPDIR": folder, "SINGULARITY_TMPDIR": folder}
        environment = {**self.environment, **own}
        status = runner.stream(command, log=self.log, on_line=self.watcher, env=environment)
        if status != 0:
            raise BuildError(self.watcher.problem(f"{self.engine.product} failed"))


def _of_base(tree: Path) -> dict[str, object]:
    return {"metadata": asdict(keptfiles.base_metadata(tree))}
