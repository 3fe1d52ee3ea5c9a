"""Run a step of a plan, in a tree or on an overlay of cached results, and return its changes.

An ordinary user's overlay of squashfs files goes through FUSE, which takes twice as long. So the
steps of a build from scratch run one after the other in one tree. Comparing the tree with its
earlier state gives the changes of each. On cached results a step runs on an overlay. If an overlay
would be wrong (step_results.py decides), or there is one id only, the results are unpacked to a
tree first.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sifwright.build.checks import disk_space, host_checks
from sifwright.build.layers.merge_layers import merge
from sifwright.build.layers.pack import SQUASHFS, PackOptions, WorkTree
from sifwright.build.steps import build_folder
from sifwright.catalog import image_name
from sifwright.errors import BuildError, MachineError
from sifwright.render import build_files
from sifwright.system import processes, tempdirs, user_namespace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Executor, Future
    from pathlib import Path

    from sifwright.build.cache.store import CacheEntry
    from sifwright.build.downloads.prefetch import Prefetcher
    from sifwright.build.output_parser import OutputParser
    from sifwright.build.request.host_settings import Settings
    from sifwright.host.engines.apptainer import Apptainer
    from sifwright.plan.model import Plan


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRun:
    """The changes of a step, the folder that has them, and its files for later steps."""

    changes: Path | WorkTree
    tree: Path
    kept: Mapping[str, str]


@dataclass(kw_only=True, slots=True)
class Sandbox:
    """The tree or the overlay that steps run in.

    `base` is the definition file of the first step, `mirrors` are those of `build_folder.mirrors`,
    `environment` is the engine's. Trees are below `temporary`, whose maker removes it. `downloads`
    fetches files for the steps. `background` has one worker, which removes trees.
    """

    plan: Plan
    base: str
    mirrors: Mapping[str, str]
    engine: Apptainer
    settings: Settings
    environment: Mapping[str, str]
    watcher: OutputParser
    log: Path
    temporary: Path
    downloads: Prefetcher | None
    background: Executor
    _holds: tuple[str, str] | None = field(default=None, init=False)
    _removal: Future[None] | None = field(default=None, init=False)

    def run(self, number: int, below: Sequence[CacheEntry], work_dir: Path) -> StepRun:
        """Run a step on the results of those before it; `work_dir` is an empty folder.

        In the tree if that is what they come to, else on an overlay. Raises `BuildError` if the
        step fails.
        """
        is_live = self.holds(below)
        self._holds = None
        if not below:
            return self._first(work_dir)
        self._build_folder(number, below[-1], work_dir)
        if is_live:
            self._run(self._inside(number, work_dir, "run"), work_dir)
            return self._live(work_dir, build_folder.read(work_dir))
        self._run(self._overlaid(below, work_dir, "run"), work_dir)
        tree = work_dir / "overlay" / "upper"
        return StepRun(changes=tree, tree=tree, kept=build_folder.read(work_dir))

    def holds(self, below: Sequence[CacheEntry]) -> bool:
        """Return whether the tree holds these results."""
        return bool(below) and self._holds == _identity(below[-1])

    def keep(self, entry: CacheEntry) -> None:
        """Keep the tree of the last step for the next one: it is that of this result."""
        self._holds = _identity(entry)

    def discard(self) -> None:
        """Have the tree removed while the caller goes on: the files of an image take seconds."""
        self._holds = None
        self._removal = self.background.submit(self._remove)

    @property
    def is_clearing(self) -> bool:
        """Return whether a tree is still being removed."""
        return self._removal is not None and not self._removal.done()

    def shell(self, below: Sequence[CacheEntry], work_dir: Path) -> list[str]:
        """Return the command that opens a shell where the step after these would begin."""
        self._build_folder(len(below), below[-1], work_dir)
        if self.holds(below):
            around = user_namespace.around(self.owners, self._tree)
            return [*around, *self._inside(len(below), work_dir, "shell")]
        return self._overlaid(below, work_dir, "shell")

    @property
    def _tree(self) -> Path:
        return self.temporary / "tree"

    @property
    def owners(self) -> Path:
        """Return the file of the owners in the tree, with one id."""
        return self.temporary / "owners"

    @property
    def _state(self) -> Path:
        return self.temporary / "state.json"

    def unpack(self, below: Sequence[CacheEntry], beside: int) -> None:
        """Make the tree of these results; the next step takes `beside` bytes there, if known.

        Raises `MachineError` if there is no room for it, or the last one cannot be removed.
        """
        self._clear()
        disk_space.require_free_space(
            self.temporary, sum(entry.unpacked for entry in below) + beside, "to unpack the layers"
        )
        how = PackOptions(compression="", log=self.log, owners=self.owners)
        merge([entry.file(SQUASHFS) for entry in below], self.temporary, how, self._state)
        # Nothing is made there to bind to, unlike on an overlay.
        _build(self._tree).mkdir(exist_ok=True)
        self._holds = _identity(below[-1])

    def _clear(self) -> None:
        """Make room for another tree, once one that is being removed has gone.

        Raises `MachineError` if it stays: what was in it would be in the other one, too.
        """
        self.background.submit(self._remove).result()
        if self._tree.exists():
            message = "cannot be removed, and another step needs the place"
            raise MachineError.of(message, where=str(self._tree), fix=host_checks.TEMPORARY_FIX)

    def _remove(self) -> None:
        if self._tree.exists():
            tempdirs.remove_tree(self._tree)
        self._state.unlink(missing_ok=True)
        self.owners.unlink(missing_ok=True)

    def _live(self, work_dir: Path, kept: Mapping[str, str]) -> StepRun:
        upper = work_dir / "upper"
        upper.mkdir()
        changes = WorkTree(tree=self._tree, state=self._state, upper=upper)
        return StepRun(changes=changes, tree=self._tree, kept=kept)

    def _first(self, work_dir: Path) -> StepRun:
        """Make the first step's tree; the build's own folder is in it."""
        self._clear()
        definition = work_dir / "base.def"
        definition.write_text(self.base)
        binds = [*build_folder.make_step_tmp(work_dir), *self.settings.definition_binds]
        self._run(self.engine.sandbox_command(definition, self._tree, binds=binds), work_dir)
        self._give_to_owners()
        return self._live(work_dir, build_folder.read(self._tree))

    def _give_to_owners(self) -> None:
        """Have files belong to whom the base image gives them, where the engine only noted that."""
        kind = self.plan.steps[0].header.get("Bootstrap")
        if kind not in {image_name.REGISTRY, *image_name.LOCAL}:
            return
        module = "sifwright.build.layers.rootless_owners"
        program = [sys.executable, "-P", "-m", module, str(self._tree)]
        words = [*user_namespace.prefix(self.owners, self._tree), *program]
        env = user_namespace.environment()
        if processes.stream(words, log=self.log, on_line=self.watcher, env=env) != 0:
            message = "the owners of the base image's files cannot be set"
            raise BuildError.of(message, fix=f"Whole log: {self.log}")

    def _inside(self, number: int, work_dir: Path, script: str) -> list[str]:
        """Return the command that runs a script of the build's own folder in the tree."""
        inside = f"{build_files.BUILD}/{script}"
        binds = [*build_folder.make_step_tmp(work_dir, self._tree), *self._binds(number, work_dir)]
        return self.engine.inside_command(self._tree, inside, binds=binds)

    def _overlaid(self, below: Sequence[CacheEntry], work_dir: Path, script: str) -> list[str]:
        """Return the command that runs a script of the build's own folder on these results."""
        overlay = work_dir / "overlay"
        overlay.mkdir()
        layers = [entry.file(SQUASHFS) for entry in below]
        inside = f"{build_files.BUILD}/{script}"
        binds = [*build_folder.make_step_tmp(work_dir), *self._binds(len(below), work_dir)]
        return self.engine.step_command(layers, overlay, inside, binds=binds)

    def _build_folder(self, number: int, below: CacheEntry, work_dir: Path) -> None:
        """Make the build's own folder: it is bound, so that nothing of it is in the changes."""
        machine, kept = self.settings.machine, self._kept(below)
        build_folder.prepare(_build(work_dir), self.plan, number, machine, kept)

    def _binds(self, number: int, work_dir: Path) -> list[str]:
        build = _build(work_dir)
        fetched = self._fetched(number, build)
        return [f"{build}:{build_files.BUILD}", *self.settings.binds, *fetched]

    def _fetched(self, number: int, build: Path) -> list[str]:
        """Return the bind of the step's downloads, where its pip and fetch-source look."""
        folder = self.downloads.folder(number) if self.downloads else None
        if folder is None:
            return []
        (build / "fetched").mkdir()
        return [f"{folder}:{build_files.BUILD}/fetched:ro"]

    def _kept(self, below: CacheEntry) -> dict[str, str]:
        """Return files of earlier layers, with this machine's mirrors in place of theirs."""
        return build_folder.moved(below.manifest["kept"], below.manifest["mirrors"], self.mirrors)

    def _run(self, command: list[str], work_dir: Path) -> None:
        folder = str(work_dir)
        own = {"APPTAINER_TMPDIR": folder, "SINGULARITY_TMPDIR": folder}
        environment = {**self.environment, **own}
        words = [*user_namespace.around(self.owners, self._tree), *command]
        status = processes.stream(words, log=self.log, on_line=self.watcher, env=environment)
        build_folder.clear_step_tmp(work_dir)
        if status != 0:
            raise BuildError(self.watcher.problem(f"{self.engine.product} failed"))
        self.watcher.say_refused()


def _build(root: Path) -> Path:
    """Return the build's own folder in a tree."""
    return root / build_files.BUILD.lstrip("/")


def _identity(entry: CacheEntry) -> tuple[str, str]:
    """Tells a result from every other one, also of the same step."""
    return entry.key, entry.digest(SQUASHFS)
