"""The folder of native installations: versions, the link to the current one, modulefiles."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sifwright.errors import UsageError
from sifwright.install.native.check_record import damaged_part
from sifwright.system import access, cache_folder, liveness, small_file
from sifwright.system.os_errors import nearest_existing_parent
from sifwright.system.terminal import first_names

_RECORD, _VERSIONS, _CURRENT = "sifwright.json", "versions", "current"
# The first line of a script ends a path at a blank (execve(2)), PATH ends one at a colon.
_PATH = re.compile(r"/[A-Za-z0-9_./+@%=,-]*")
_LONGEST = 80
MOST_NAMES = 10
# Files that a run has before its record: of its claim, and what becomes the record.
_UNRECORDED = re.compile(r"\.sifwright/(claims/(install|\.[0-9a-f]{16})|\.sifwright-[^/]*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class InstalledVersion:
    """A complete version, as the record has it; `entry` is its whole entry there."""

    folder: Path
    snapshot: Path
    names: Path
    entry: Mapping[str, Any]

    def text(self, key: str) -> str:
        """Return a value of the entry; nothing if the entry has none."""
        return str(self.entry.get(key, ""))

    @property
    def plan_file(self) -> Path:
        return self.folder / "sifwright/plan.json"


@dataclass(frozen=True, slots=True)
class NativeFolder:
    """Paths below `root`. A complete version is in the record."""

    root: Path

    @property
    def record(self) -> Path:
        return self.root / _RECORD

    @property
    def current(self) -> Path:
        """Return the link to the version that was installed last."""
        return self.root / _CURRENT

    @property
    def versions(self) -> Path:
        return self.root / _VERSIONS

    @property
    def modulefiles(self) -> Path:
        return self.root / "modulefiles"

    @property
    def easyconfigs(self) -> Path:
        return self.root / "easyconfigs"

    @property
    def page(self) -> Path:
        """Return the page that `sifwright report` writes."""
        return self.root / "report.html"

    @property
    def private(self) -> Path:
        """Return the folder of claims, logs, states of files and temporary files."""
        return self.root / ".sifwright"

    @property
    def claims(self) -> Path:
        return self.private / cache_folder.CLAIMS

    @property
    def clock(self) -> Path:
        """Return the file that has the time of the file system."""
        return self.private / liveness.CLOCK

    @property
    def scratch(self) -> Path:
        """Return the folder of the step that runs: below the root, or where the user wants it.

        Its name is short, because paths of sockets in it have at most 107 letters (unix(7)).
        """
        if wanted := os.environ.get("APPTAINER_TMPDIR"):
            name = hashlib.sha256(str(self.root).encode()).hexdigest()[:12]
            return Path(wanted).absolute() / f"sifwright-{name}"
        return self.private / "tmp"

    def require_writable(self, fix: str) -> None:
        """Raise `UsageError` if this user may not write there, or make the folder."""
        access.require_writable(nearest_existing_parent(self.private), fix)

    def require_link(self) -> None:
        """Raise `UsageError` if `current` is no link: a link cannot replace a folder."""
        if os.path.lexists(self.current) and not self.current.is_symlink():
            message, fix = "is no link, and 'sifwright install' makes one", "Move it away."
            raise UsageError.of(message, where=str(self.current), fix=fix)

    def version(self, plan_id: str, number: int) -> Path:
        """Return a folder of a plan; from the second on, its name ends with the number."""
        return self.versions / f"{plan_id[:12]}{f'-{number}' if number > 1 else ''}"

    def snapshot(self, version: Path) -> Path:
        """Return the file with the state of the version's files."""
        return self.private / f"{version.name}.json"

    def names(self, version: Path) -> Path:
        """Return the file with the names of all files that were installed for the version."""
        return self.private / f"{version.name}.names"

    def complete(self, version: Path) -> InstalledVersion | None:
        """Return the complete version in a folder; None if the record has none there."""
        recorded = self._recorded() if self.record.exists() else ()
        return next((entry for entry in recorded if entry.folder == version), None)

    def unfinished(self) -> dict[str, str]:
        """Return the image of each unfinished version, by the name of its folder."""
        record = self.read() if self.record.exists() else {"versions": {}}
        complete = {entry["folder"] for entry in record["versions"].values()}
        images = record.get("unfinished") or {}
        return {name: image for name, image in images.items() if name not in complete}

    def published(self) -> InstalledVersion | None:
        """Return the version that `current` leads to, or None if it leads to no complete one."""
        there = (entry for entry in self._recorded() if entry.folder.is_dir())
        target = self.current.resolve()
        return next((entry for entry in there if entry.folder.resolve() == target), None)

    def _recorded(self) -> Iterator[InstalledVersion]:
        for entry in self.read()["versions"].values():
            folder = self.versions / str(entry["folder"])
            yield InstalledVersion(
                folder=folder,
                snapshot=self.snapshot(folder),
                names=self.names(folder),
                entry=entry,
            )

    def foreign_names(self) -> Iterator[str]:
        """Yield the names in a folder without a record; ours are those of a run that was killed."""
        folders = filter(Path.is_dir, (self.root, self.private, self.claims))
        paths = {path for folder in folders for path in folder.iterdir()}
        for path in paths - {self.private, self.claims, self.clock}:
            name = str(path.relative_to(self.root))
            if not _UNRECORDED.fullmatch(name):
                yield name

    def in_use(self) -> InstalledVersion:
        """Return the version that `current` leads to; raises `UsageError` if there is none."""
        if version := self.published():
            return version
        fix = "Run 'sifwright install' again."
        raise UsageError.of("no complete version is in use", where=str(self.current), fix=fix)

    def read(self) -> dict[str, Any]:
        """Return the record; raises `UsageError` if it is damaged, or the folder is not ours."""
        fix = "Restore this file, or install into a new folder and remove this one by hand."
        try:
            record: dict[str, Any] = small_file.read_json(self.record)
        except FileNotFoundError as error:
            message, fix = "is no folder of 'sifwright install'", f"It has no {_RECORD}."
            raise UsageError.of(message, where=str(self.root), fix=fix) from error
        except (OSError, ValueError) as error:
            message = f"cannot be read: {error}"
            raise UsageError.of(message, where=str(self.record), fix=fix) from error
        if part := damaged_part(record):
            message = f"is damaged: '{part}' has a value that 'sifwright install' does not write"
            raise UsageError.of(message, where=str(self.record), fix=fix)
        return record


def native_folder(prefix: str) -> NativeFolder:
    """Return the folder; raises `UsageError` for paths that cannot hold an installation.

    A new folder must be empty or absent, and an old one must be ours and where it was made. A link
    to an old one is followed.
    """
    root = Path(prefix)
    if not _PATH.fullmatch(prefix) or len(prefix) > _LONGEST:
        message = f"must be a full path of at most {_LONGEST} characters, without blanks and colons"
        raise UsageError.of(message, where=f"--prefix {prefix}", fix="Example: /sw/app/pytorch")
    root = Path(os.path.normpath(root))
    access.require_reachable(root, f"--prefix {prefix}")
    folder = NativeFolder(root)
    _refuse_links(folder)
    if folder.record.exists():
        folder = without_link(folder)
        _refuse_moved(folder)
    elif names := sorted(folder.foreign_names()):
        message = "is not empty, and is no folder of 'sifwright install'"
        fix = f"Name a new folder, or move away what is there: {first_names(names, MOST_NAMES)}."
        raise UsageError.of(message, where=f"--prefix {prefix}", fix=fix)
    return folder


def without_link(folder: NativeFolder) -> NativeFolder:
    """Return the folder by the path that its scripts have, if that leads to it; else itself.

    Raises `UsageError` as `NativeFolder.read` does.
    """
    recorded = NativeFolder(Path(folder.read()["prefix"]))
    return recorded if recorded.root.resolve() == folder.root.resolve() else folder


def refuse_moved_environment(environment: Path) -> None:
    """Raise `UsageError` if the environment is in an installation that was moved."""
    for parent in environment.resolve().parents:
        if parent.name == _VERSIONS and (parent.parent / _RECORD).exists():
            _refuse_moved(without_link(NativeFolder(parent.parent)))


def _refuse_links(folder: NativeFolder) -> None:
    """Raise `UsageError` for links in place of private files: what is in them would be removed."""
    for path in (folder.private, folder.claims, folder.clock):
        if path.is_symlink():
            message = f"is a link to {path.readlink()}, and 'sifwright install' makes none there"
            raise UsageError.of(message, where=str(path), fix="Remove the link.")


def _refuse_moved(folder: NativeFolder) -> None:
    """Raise `UsageError` if the folder was moved: scripts in it have its old path."""
    made_for = folder.read().get("prefix")
    if made_for != str(folder.root):
        message = f"was moved: it was installed as {made_for}, and its scripts have that path"
        fix = f"Move it back, or install into a new folder, and remove {folder.root} by hand."
        raise UsageError.of(message, where=str(folder.root), fix=fix)
