"""Run a step of a plan, in a tree or on an overlay of cached results, and return its changes.

An ordinary user's overlay of squashfs files goes through FUSE, which takes twice as long. So the
steps of a build from scratch run one after the other in one tree. Comparing the tree with its
earlier state gives the changes of each. On cached results a step runs on an overlay. If an overlay
would be wrong (step_life.py decides), the results are unpacked to a tree first. With one id, they
always are.
"""

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path

from sifwright.catalog import image_name
from sifwright.errors import BuildError, MachineError
from sifwright.host.engines.apptainer import Apptainer
from sifwright.make_image.cache.store import CacheEntry
from sifwright.make_image.downloads.prefetch import Prefetcher
from sifwright.make_image.pack_layers.merge_layers import merge
from sifwright.make_image.pack_layers.pack import SQUASHFS, PackOptions, WorkTree
from sifwright.make_image.resolve_request import host_settings
from sifwright.make_image.resolve_request.build_context import BuildContext
from sifwright.make_image.run_steps import build_folder
from sifwright.render import build_files
from sifwright.render.definition import base_definition
from sifwright.system import os_errors, processes, tempdirs, user_namespace
from sifwright.system.free_space import require_free_space
from sifwright.system.tempdirs import TEMPORARY_FIX


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRun:
    """The changes of a step, the folder that has them, and its files for later steps."""

    changes: Path | WorkTree
    tree: Path
    kept: Mapping[str, str]


@dataclass(kw_only=True, slots=True)
class Sandbox:
    """The tree or the overlay that steps run in.

    Trees are below the working folder of the build; its maker removes it. `downloads` fetches
    files for the steps. `background` has one worker, which removes trees.
    """

    context: BuildContext
    engine: Apptainer
    downloads: Prefetcher | None
    background: Executor
    _tree_entry: tuple[str, str] | None = field(default=None, init=False)
    _removal: Future[None] | None = field(default=None, init=False)

    def run(self, below: Sequence[CacheEntry], work_dir: Path) -> StepRun:
        """Run a step on the results of those before it; `work_dir` is an empty folder.

        In the tree if that is what they come to, else on an overlay. Raises `BuildError` if the
        step fails.
        """
        is_live = self.tree_matches(below)
        self._tree_entry = None
        if not below:
            return self._run_first_step(work_dir)
        self._run(self._command(below, work_dir, "run", in_tree=is_live), work_dir)
        if is_live:
            return self._result_in_tree(work_dir, build_folder.read(work_dir))
        tree = work_dir / "overlay" / "upper"
        return StepRun(changes=tree, tree=tree, kept=build_folder.read(work_dir))

    def tree_matches(self, below: Sequence[CacheEntry]) -> bool:
        """Return whether the tree holds these results."""
        return bool(below) and self._tree_entry == _identity(below[-1])

    def adopt_tree(self, entry: CacheEntry) -> None:
        """Keep the tree of the last step for the next one: it is that of this result."""
        self._tree_entry = _identity(entry)

    def remove_tree(self) -> None:
        """Have the tree removed while the caller goes on: the files of an image take seconds."""
        self._tree_entry = None
        self._removal = self.background.submit(self._remove)

    @property
    def is_removing(self) -> bool:
        """Return whether a tree is still being removed."""
        return self._removal is not None and not self._removal.done()

    def shell(self, below: Sequence[CacheEntry], work_dir: Path) -> list[str]:
        """Return the command that opens a shell where the step after these would begin."""
        in_tree = self.tree_matches(below)
        around = user_namespace.around(self.owners, self._tree) if in_tree else []
        return [*around, *self._command(below, work_dir, "shell", in_tree=in_tree)]

    @property
    def _tree(self) -> Path:
        return self.context.work_dir / "tree"

    @property
    def owners(self) -> Path:
        """Return the file of the owners in the tree, with one id."""
        return self.context.work_dir / "owners"

    @property
    def _state(self) -> Path:
        return self.context.work_dir / "state.json"

    def unpack(self, below: Sequence[CacheEntry], step_bytes: int) -> None:
        """Make the tree of these results; the next step takes `step_bytes` there; 0 is unknown.

        Raises `MachineError` if there is no room for it, or the last one cannot be removed.
        """
        self._clear()
        folder, size = self.context.work_dir, sum(entry.unpacked for entry in below) + step_bytes
        require_free_space(folder, size, "to unpack the layers")
        how = PackOptions(
            compression="", log=self.context.log, fix=self.context.watcher.fix, owners=self.owners
        )
        merge([entry.file(SQUASHFS) for entry in below], folder, how, self._state)
        # Nothing is made there to bind to, unlike on an overlay.
        _build(self._tree).mkdir(exist_ok=True)
        self._tree_entry = _identity(below[-1])

    def _clear(self) -> None:
        """Make room for another tree, once one that is being removed has gone.

        Raises `MachineError` if it stays: what was in it would be in the other one, too.
        """
        self.background.submit(self._remove).result()
        if self._tree.exists():
            message = "cannot be removed, and another step needs the place"
            raise MachineError.of(message, where=str(self._tree), fix=TEMPORARY_FIX)

    def _remove(self) -> None:
        if self._tree.exists():
            tempdirs.remove_tree(self._tree)
        self._state.unlink(missing_ok=True)
        self.owners.unlink(missing_ok=True)

    def _result_in_tree(self, work_dir: Path, kept: Mapping[str, str]) -> StepRun:
        upper = work_dir / "upper"
        upper.mkdir()
        changes = WorkTree(tree=self._tree, state=self._state, upper=upper)
        return StepRun(changes=changes, tree=self._tree, kept=kept)

    def _run_first_step(self, work_dir: Path) -> StepRun:
        """Make the first step's tree; the build's own folder is in it."""
        self._clear()
        context = self.context
        host_settings.note_epoch(context.settings.machine, context.options.epoch)
        definition = work_dir / "base.def"
        definition.write_text(base_definition(context.plan, context.header), encoding="utf-8")
        binds = [*build_folder.make_step_tmp(work_dir), *context.settings.definition_binds]
        self._run(self.engine.sandbox_command(definition, self._tree, binds=binds), work_dir)
        self._give_to_owners()
        return self._result_in_tree(work_dir, build_folder.read(self._tree))

    def _give_to_owners(self) -> None:
        """Give files the owners of the base image, if the engine only noted them."""
        if self.context.base.kind not in {image_name.REGISTRY, *image_name.LOCAL}:
            return
        module = "sifwright.make_image.pack_layers.rootless_owners"
        program = [sys.executable, "-P", "-m", module, str(self._tree)]
        words = [*user_namespace.prefix(self.owners, self._tree), *program]
        log, env = self.context.log, user_namespace.environment()
        if processes.stream(words, log=log, on_line=self.context.watcher, env=env) != 0:
            message = "the owners of the base image's files cannot be set"
            raise BuildError.of(message, fix=f"Whole log: {log}")

    def _command(
        self, below: Sequence[CacheEntry], work_dir: Path, script: str, *, in_tree: bool
    ) -> list[str]:
        """Make the build's own folder, and return the command that runs a script of it.

        The folder is bound, so that nothing of it is in the changes.
        """
        number, settings, manifest = len(below), self.context.settings, below[-1].manifest
        mirrors = build_folder.mirrors(self.context.header)
        kept = build_folder.moved(manifest["kept"], manifest["mirrors"], mirrors)
        host_settings.note_epoch(settings.machine, self.context.options.epoch + number)
        build = _build(work_dir)
        build_folder.prepare(build, self.context.plan, number, settings, kept)
        binds = build_folder.make_step_tmp(work_dir, self._tree if in_tree else None)
        binds += [f"{build}:{build_files.BUILD}", *settings.binds]
        if self.downloads and (folder := self.downloads.folder(number)):
            # The folder in which pip and fetch-source of the step look.
            (build / "fetched").mkdir()
            binds.append(f"{folder}:{build_files.BUILD}/fetched:ro")
        inside = f"{build_files.BUILD}/{script}"
        if in_tree:
            return self.engine.inside_command(self._tree, inside, binds=binds)
        overlay, layers = work_dir / "overlay", [entry.file(SQUASHFS) for entry in below]
        overlay.mkdir()
        return self.engine.step_command(layers, overlay, inside, binds=binds)

    def _run(self, command: list[str], work_dir: Path) -> None:
        own = dict.fromkeys(("APPTAINER_TMPDIR", "SINGULARITY_TMPDIR"), str(work_dir))
        environment = {**self.context.environment(), **own}
        words, watcher = (
            [*user_namespace.around(self.owners, self._tree), *command],
            self.context.watcher,
        )
        status = processes.stream(words, log=self.context.log, on_line=watcher, env=environment)
        # Before anything is removed. Without inodes, dpkg says that a file exists already (tried).
        was_full = any("no space left on device" in line.lower() for line in watcher.tail)
        lacking = os_errors.exhausted(work_dir, was_full=was_full)
        build_folder.clear_step_tmp(work_dir)
        if status != 0:
            reason = f" ({lacking} below {work_dir.parent})" if lacking else ""
            raise BuildError(watcher.problem(f"{self.engine.product} failed{reason}"))
        watcher.say_refused()


def _build(root: Path) -> Path:
    """Return the build's own folder in a tree."""
    return root / build_files.BUILD.lstrip("/")


def _identity(entry: CacheEntry) -> tuple[str, str]:
    """Return the key and digest, which tell a result from others of the same step."""
    return entry.key, entry.digest(SQUASHFS)
