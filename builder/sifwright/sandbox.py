"""Run the steps of a plan: in a tree of their own or on cached results, and say what they changed.

On squashfs files an ordinary user's steps go through FUSE, which takes twice as long. So the steps
of a build from scratch run one after the other in one tree, and what each changed is found by
comparing; where there is a cached result below, a step runs on an overlay of those. What overlays
get wrong (steps.py knows when) runs in a tree that the results are unpacked to first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import host_checks, keptfiles, room, runner, steptmp, workspace
from sifwright.cachedsteps import unpacked
from sifwright.errors import BuildError, MachineError
from sifwright.render import buildfiles
from sifwright.squash.flatten import merge
from sifwright.squash.pack import SQUASHFS, Live, Packing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Executor, Future

    from sifwright.downloads.ahead import Ahead
    from sifwright.engines.apptainer import Apptainer
    from sifwright.machine import Settings
    from sifwright.model import Plan
    from sifwright.store.store import Entry
    from sifwright.watcher import Watcher

__all__ = ["Ran", "Sandbox"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """What a step changed, the folder that has it, and what it left for later steps."""

    changes: Path | Live
    tree: Path
    kept: Mapping[str, str]


@dataclass(kw_only=True, slots=True)
class Sandbox:
    """What running steps takes.

    `base` is the definition file of the first step, `mirror` is where this machine finds Debian's
    packages, `environment` the engine's. Trees are below `temporary`, to be removed by whoever made
    it. `downloads` fetches what the steps download, if anything does. `aside` has one worker: it
    removes trees.
    """

    plan: Plan
    base: str
    mirror: str
    engine: Apptainer
    settings: Settings
    environment: Mapping[str, str]
    watcher: Watcher
    log: Path
    temporary: Path
    downloads: Ahead | None
    aside: Executor
    _holds: tuple[str, str] | None = field(default=None, init=False)
    _removal: Future[None] | None = field(default=None, init=False)

    def run(self, number: int, below: Sequence[Entry], work: Path) -> Ran:
        """Run a step on the results of those before it; `work` is an empty folder.

        In the tree if that is what they come to, else on an overlay. Raises `BuildError` if the
        step fails.
        """
        is_live = self.holds(below)
        self._holds = None
        if not below:
            return self._first(work)
        self._build_folder(number, below[-1], work)
        if is_live:
            self._run(self._inside(number, work, "run"), work)
            return self._live(work, keptfiles.read(work))
        self._run(self._overlaid(below, work, "run"), work)
        tree = work / "overlay" / "upper"
        return Ran(changes=tree, tree=tree, kept=keptfiles.read(work))

    def holds(self, below: Sequence[Entry]) -> bool:
        """Whether the tree is what these results come to."""
        return bool(below) and self._holds == _identity(below[-1])

    def keep(self, entry: Entry) -> None:
        """The tree that the last step ran in is that of this result, for the next one to go on."""
        self._holds = _identity(entry)

    def discard(self) -> None:
        """Have the tree removed while the caller goes on: the files of an image take seconds."""
        self._holds = None
        self._removal = self.aside.submit(self._remove)

    @property
    def is_clearing(self) -> bool:
        """Whether a tree is still being removed."""
        return self._removal is not None and not self._removal.done()

    def shell(self, below: Sequence[Entry], work: Path) -> list[str]:
        """The command that opens a shell where the step after these would begin."""
        self._build_folder(len(below), below[-1], work)
        if self.holds(below):
            return self._inside(len(below), work, "shell")
        return self._overlaid(below, work, "shell")

    @property
    def _tree(self) -> Path:
        return self.temporary / "tree"

    @property
    def _state(self) -> Path:
        return self.temporary / "state.json"

    def unpack(self, below: Sequence[Entry], beside: int) -> None:
        """Make the tree of these results; the next step takes `beside` bytes there, if known.

        Raises `MachineError` if there is no room for it, or the last one cannot be removed.
        """
        self._clear()
        room.require(self.temporary, sum(map(unpacked, below)) + beside, "to unpack the layers")
        how = Packing(compression="", log=self.log)
        merge([entry.file(SQUASHFS) for entry in below], self.temporary, how, self._state)
        # Nothing is made there to bind to, unlike on an overlay.
        _build(self._tree).mkdir(exist_ok=True)
        self._holds = _identity(below[-1])

    def _clear(self) -> None:
        """Make room for another tree, once one that is being removed has gone.

        Raises `MachineError` if it stays: what was in it would be in the other one, too.
        """
        self.aside.submit(self._remove).result()
        if self._tree.exists():
            what = "cannot be removed, and another step needs the place"
            raise MachineError.of(what, where=str(self._tree), fix=host_checks.TEMPORARY_FIX)

    def _remove(self) -> None:
        if self._tree.exists():
            workspace.remove_tree(self._tree)
        self._state.unlink(missing_ok=True)

    def _live(self, work: Path, kept: Mapping[str, str]) -> Ran:
        upper = work / "upper"
        upper.mkdir()
        changes = Live(tree=self._tree, state=self._state, upper=upper)
        return Ran(changes=changes, tree=self._tree, kept=kept)

    def _first(self, work: Path) -> Ran:
        """Make the first step's tree; the build's own folder is in it."""
        self._clear()
        definition = work / "base.def"
        definition.write_text(self.base)
        binds = [*steptmp.made(work), *self.settings.binds]
        self._run(self.engine.sandbox_command(definition, self._tree, binds=binds), work)
        return self._live(work, keptfiles.read(self._tree))

    def _inside(self, number: int, work: Path, script: str) -> list[str]:
        """The command that runs a script of the build's own folder in the tree."""
        inside = f"{buildfiles.BUILD}/{script}"
        binds = [*steptmp.made(work, self._tree), *self._binds(number, work)]
        return self.engine.inside_command(self._tree, inside, binds=binds)

    def _overlaid(self, below: Sequence[Entry], work: Path, script: str) -> list[str]:
        """The command that runs a script of the build's own folder on these results."""
        overlay = work / "overlay"
        overlay.mkdir()
        layers = [entry.file(SQUASHFS) for entry in below]
        inside = f"{buildfiles.BUILD}/{script}"
        binds = [*steptmp.made(work), *self._binds(len(below), work)]
        return self.engine.step_command(layers, overlay, inside, binds=binds)

    def _build_folder(self, number: int, below: Entry, work: Path) -> None:
        """Make the build's own folder: it is bound, so that nothing of it is in the changes."""
        machine = Path(self.settings.env["SIFWRIGHT_MACHINE"])
        keptfiles.prepare(_build(work), self.plan, number, machine, self._kept(below))

    def _binds(self, number: int, work: Path) -> list[str]:
        build = _build(work)
        fetched = self._fetched(number, build)
        return [f"{build}:{buildfiles.BUILD}", *self.settings.binds, *fetched]

    def _fetched(self, number: int, build: Path) -> list[str]:
        """What was downloaded for the step, where its pip and fetch-source look for it."""
        folder = self.downloads.folder(number) if self.downloads else None
        if folder is None:
            return []
        (build / "fetched").mkdir()
        return [f"{folder}:{buildfiles.BUILD}/fetched:ro"]

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
        steptmp.clear(work)
        if status != 0:
            raise BuildError(self.watcher.problem(f"{self.engine.product} failed"))


def _build(root: Path) -> Path:
    """The build's own folder, as it is called in the image."""
    return root / buildfiles.BUILD.lstrip("/")


def _identity(entry: Entry) -> tuple[str, str]:
    """Tells a result from every other one, also of the same step."""
    return entry.key, entry.digest(SQUASHFS)
