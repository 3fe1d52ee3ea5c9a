"""An installation from top to bottom: claim, run steps, test, switch the link, write modules."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath

from sifwright.catalog.model import LayerFile
from sifwright.install.native import host_needs, install_steps, tree_snapshot
from sifwright.install.native.claim import claimed
from sifwright.install.native.install_steps import HostSteps, kept_files, with_parents
from sifwright.install.native.native_folder import InstalledVersion, NativeFolder
from sifwright.make_image.resolve_request.output_parser import OutputParser
from sifwright.make_image.run_steps.step_engine import run_steps
from sifwright.plan.model import Plan
from sifwright.system import files, free_space, liveness
from sifwright.system.progress import Progress, Timer
from sifwright.system.tempdirs import name_folder_in_errors, remove

_TESTS, _PLAN = "/sifwright/tests/*/test.sh", "sifwright/plan.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class NativeRequest:
    """A plan, the folder of its version, and the texts of its modulefiles by their paths.

    `damage` is a note of the damaged version that this one replaces; empty if there is none.
    `easyconfig` and `venv_hook` are the path and the text of the one and the other. `settings` are
    the options of the command line.
    """

    plan: Plan
    settings: tuple[str, ...]
    folder: NativeFolder
    version: Path
    damage: str
    modulefiles: dict[str, str]
    easyconfig: tuple[str, str]
    venv_hook: tuple[str, str]

    @property
    def is_current(self) -> bool:
        """Return whether the plan is completely installed, undamaged, and current."""
        folder, link, complete = self.folder, self.folder.current, self.complete
        return (
            complete is not None
            and not tree_snapshot.missing_names(self.version, complete.snapshot, complete.names)
            and link.is_symlink()
            and link.resolve() == self.version.resolve()
            and not self.old_tests
            and all(_has(self.version / path, file.data) for path, file in self._tests.items())
            # The modulefiles have the site's facts as they are now.
            and all(
                _has(folder.modulefiles / path, text.encode())
                for path, text in self.modulefiles.items()
            )
            and (folder.easyconfigs / self.easyconfig[0]).exists()
        )

    @property
    def old_tests(self) -> list[Path]:
        """Return the installed tests of layers that have none any more."""
        recorded = tree_snapshot.read_names(self.folder.names(self.version)) or set()
        old = (name for name in recorded - self._tests.keys() if PurePath("/", name).match(_TESTS))
        return [path for name in sorted(old) if (path := self.version / name).exists()]

    @property
    def _tests(self) -> dict[str, LayerFile]:
        """Return the tests and their programs; the plan has origins of options, which change."""
        kept = kept_files(self.plan, self.version)
        return {name: kept[name] for name in kept.keys() - {_PLAN}}

    @property
    def image(self) -> str:
        """Return the image and the site: only one of its versions is unfinished."""
        return f"{self.plan.image.name} for {self.plan.site.name}"

    @property
    def earlier_tries(self) -> list[str]:
        """Return the names of unfinished versions of the image that are of other plans."""
        images = self.folder.unfinished().items()
        return [name for name, image in images if image == self.image and name != self.version.name]

    @property
    def complete(self) -> InstalledVersion | None:
        """Return what the record has of the version; None if it is not complete."""
        return self.folder.complete(self.version)


def _has(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def install(request: NativeRequest, progress: Progress) -> None:
    """Install the plan beside earlier versions, test it, and make it the current one.

    After any failure, the current version stays current. Raises `MachineError`, before it writes
    a file, if the host lacks something or another process installs there. Raises `BuildError` or
    `TestError` if a step or a test fails.
    """
    folder = request.folder
    folder.require_writable("Name a folder of yours by --prefix.")
    with (
        name_folder_in_errors(folder.root, "Free some, or name another --prefix."),
        _umask(0o022),
        Timer(progress) as timer,
    ):
        timer.start("check this machine")
        _check_host(request, progress)
        timer.finish("done")
        with claimed(folder) as new:
            if request.damage:
                progress.note(request.damage)
            if not folder.record.exists():
                _start_record(folder, new)
            steps = _steps(request, timer)
            if request.complete:
                _update_version(request, steps)
            else:
                _install_version(request, steps)
            _publish(request, steps)


def _check_host(request: NativeRequest, progress: Progress) -> None:
    for note in host_needs.require(request.plan, install_steps.environment()):
        progress.note(str(note))
    remove_leftovers(request)  # they take room
    if not request.complete:
        _make_room(request, progress)


def _make_room(request: NativeRequest, progress: Progress) -> None:
    """Remove earlier tries of the image, if there is room for the plan then."""
    folder = request.folder
    has_tries = bool(request.earlier_tries)
    with claimed(folder, on_full_disk=True) if has_tries else nullcontext():
        there = tree_snapshot.recorded_bytes(folder.snapshot(request.version))
        # Without the claim, another process may have begun one now.
        tries = [folder.versions / name for name in request.earlier_tries if has_tries]
        freed = free_space.Room.of(*tries)
        host_needs.require_space(request.plan, folder.root, folder.scratch, there, freed)
        for version in tries:
            progress.note(f"removed: {version}, an unfinished version of image {request.image}")
            remove(version)
            folder.snapshot(version).unlink(missing_ok=True)
        if tries:
            _forget(folder, tries)


def _forget(folder: NativeFolder, tries: Sequence[Path]) -> None:
    gone = {version.name for version in tries}
    left = {name: image for name, image in folder.unfinished().items() if name not in gone}
    write_record(folder, {**folder.read(), "unfinished": left})


def _start_record(folder: NativeFolder, new: list[str]) -> None:
    start = {"versions": {}, "files": [], "folders": new, "unfinished": {}}
    write_record(folder, {"prefix": str(folder.root), **start})
    liveness.clock(folder.private)  # a full disk has no room for a new one


def _steps(request: NativeRequest, timer: Timer) -> HostSteps:
    folder, plan = request.folder, request.plan
    log = folder.private / f"{plan.id[:12]}.log"
    return HostSteps(
        plan=plan,
        folder=request.version,
        snapshot=folder.snapshot(request.version),
        scratch=folder.scratch,
        log=log,
        watcher=OutputParser(timer=timer, fix=f"Whole log: {log}"),
    )


def _install_version(request: NativeRequest, steps: HostSteps) -> None:
    folder, plan = request.folder, request.plan
    unfinished = {**folder.unfinished(), request.version.name: request.image}
    write_record(folder, {**folder.read(), "unfinished": unfinished})
    run_steps(steps, len(plan.steps), steps.finish)
    _write_activation(request, steps)
    _test(request, steps)
    tree_snapshot.write_names(request.version, folder.names(request.version))
    del unfinished[request.version.name]
    record = {**folder.read(), "unfinished": unfinished}
    record["versions"][plan.id] = {
        "folder": request.version.name,
        "site": plan.site.name,
        "image": plan.image.name,
        "settings": list(request.settings),
        "env_manager": plan.site.native.env_manager if plan.site.native else "",
        "installed": datetime.now(UTC).isoformat(timespec="seconds"),
        "modulefiles": sorted(request.modulefiles),
        "timeline": steps.watcher.timer.timeline,
    }
    write_record(folder, record)


def _update_version(request: NativeRequest, steps: HostSteps) -> None:
    """Put new tests and new variables of the site in place, after the tests have passed."""
    _test(request, steps)
    names = request.folder.names(request.version)
    tree_snapshot.add_names(names, with_parents(kept_files(request.plan, request.version)))
    steps.finish([])
    for test in request.old_tests:
        test.unlink()
        with suppress(OSError):  # others' files in it stay
            test.parent.rmdir()
    _write_activation(request, steps)
    tree_snapshot.drop_names(request.version, names)


def _test(request: NativeRequest, steps: HostSteps) -> None:
    status = steps.test(request.version, None)
    steps.watcher.refuse_failed_test(status, install_steps.TEST_FAILED)
    steps.watcher.timer.finish("done")


def _write_activation(request: NativeRequest, steps: HostSteps) -> None:
    steps.write_activation()
    path, text = request.venv_hook
    steps.write(Path(path), text.encode(), mode=0o755)


def _publish(request: NativeRequest, steps: HostSteps) -> None:
    """Switch the link and write the modulefiles, each in one step."""
    folder = request.folder
    files_of = {folder.modulefiles / path: text for path, text in request.modulefiles.items()}
    files_of[folder.easyconfigs / request.easyconfig[0]] = request.easyconfig[1]
    record = folder.read()
    names = {str(path.relative_to(folder.root)) for path in files_of}
    record["files"] = sorted(names.union(record.get("files", ())))
    write_record(folder, record)
    for path, text in files_of.items():
        steps.write(path, text.encode())
    version = request.version.relative_to(folder.root)
    new = folder.private / "new"
    new.mkdir(exist_ok=True)
    (new / folder.current.name).unlink(missing_ok=True)
    files.relink(folder.current, str(version), new)


def remove_leftovers(request: NativeRequest) -> None:
    """Remove the files of a step that did not finish."""
    folder = request.folder
    if not (folder.scratch.exists() or request.version.name in folder.unfinished()):
        return
    with claimed(folder, on_full_disk=True):
        remove(folder.scratch)
        if request.version.name in folder.unfinished():
            tree_snapshot.resume(request.version, folder.snapshot(request.version))


def write_record(folder: NativeFolder, record: dict[str, object]) -> None:
    """Put the record in place of the one before."""
    text = json.dumps(record, indent=2).encode() + b"\n"
    files.write(folder.record, text, mode=0o644, beside=folder.private)


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    """Make files and folders with this umask: others must be able to use the installation."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
