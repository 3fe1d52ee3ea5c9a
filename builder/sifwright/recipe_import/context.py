"""The files that a recipe copies: those below one folder, without what .dockerignore names."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from docker.utils.build import Pattern

from sifwright.catalog.script_rules import refuse_text
from sifwright.errors import ErrorWithFix
from sifwright.system import small_file

# A layer carries small files (load_catalog.py); what is large is downloaded, with a pin.
MAX_FILE_BYTES = 4 << 20
MAX_TOTAL_BYTES = 16 << 20
_LARGE = "Have it downloaded, with a pin (docs/reference/layers.md, Sources)."


class ContextError(ErrorWithFix, ValueError):
    """A source that cannot be copied: what is wrong, and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CopiedPath:
    """A file, folder or link; `path` is relative to what is copied, empty for itself."""

    path: str
    mode: int
    data: bytes = b""
    link: str = ""

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


@dataclass(kw_only=True, slots=True)
class Context:
    """`follows`: links are copied as what they lead to, as cp -L does.

    `is_assumed`: nobody named the folder; it is the recipe's own.
    """

    root: Path
    ignored: tuple[str, ...] = ()
    follows: bool = False
    is_assumed: bool = False
    _taken: int = field(default=0, init=False)
    _patterns: list[Pattern] = field(init=False)

    def __post_init__(self) -> None:
        patterns = (Pattern(_unescaped(line)) for line in self.ignored)
        self._patterns = [pattern for pattern in patterns if pattern.dirs]

    def find(self, source: str) -> list[Path]:
        """Return the sorted paths of a source, which may be a pattern, relative to the folder."""
        parts = [part for part in source.split("/") if part not in {"", "."}]
        if ".." in parts:
            raise ContextError(f"'{source}' leads out of the folder", "Copy it into the folder.")
        # In Go's patterns [^a] is Python's [!a], and ** is no more than *.
        pattern = re.sub(r"\*+", "*", "/".join(parts).replace("[^", "[!"))
        if re.search(r"[*?\[]", pattern):
            paths = [path.relative_to(self.root) for path in self.root.glob(pattern)]
            for folder in {path.parent for path in paths}:
                self._inside(folder)
        else:
            paths = [Path(pattern)] if os.path.lexists(self.root / pattern) else []
        paths = [path for path in paths if self._is_there(path)]
        if not paths:
            fix = "Check the name, .dockerignore, and --context."
            raise ContextError(f"there is no '{source}' in {self.root}", fix)
        return sorted(paths)

    def _is_there(self, path: Path) -> bool:
        """Return whether a path, or something below it, is not ignored."""
        if not self._is_ignored(path):
            return True
        real = self.root / path
        if real.is_symlink() or not real.is_dir():
            return False
        return any(self._is_there(path / below.name) for below in real.iterdir())

    def entries(self, path: Path) -> Iterator[CopiedPath]:
        """Yield what copying a path takes: the path itself first, then its content."""
        real = self._inside(path)
        status = real.stat()
        yield self._entry("", real, status, path)
        if stat.S_ISDIR(status.st_mode):
            yield from self._below(real, path)

    def _below(self, folder: Path, shown: Path, inside: str = "") -> Iterator[CopiedPath]:
        for path in sorted(folder.iterdir()):
            name, location = path.name, f"{inside}{path.name}"
            if name == "__pycache__":
                continue  # Python makes it again, and layers do not carry it
            is_link = path.is_symlink()
            real = self._inside(shown / name) if is_link else path
            status = real.stat() if self.follows or not is_link else path.lstat()
            if not self._is_ignored(shown / name):
                yield self._entry(location, path, status, shown / name)
            if stat.S_ISDIR(status.st_mode):
                if folder.resolve().is_relative_to(real):
                    raise ContextError(f"'{shown / name}' leads round in a circle", "Remove it.")
                yield from self._below(real, shown / name, f"{location}/")

    def _entry(self, location: str, path: Path, status: os.stat_result, shown: Path) -> CopiedPath:
        if problem := refuse_text(location):
            raise ContextError(f"the file name {problem.what}", "Rename the file.")
        if stat.S_ISLNK(status.st_mode):
            return CopiedPath(path=location, mode=status.st_mode, link=str(path.readlink()))
        if stat.S_ISDIR(status.st_mode):
            return CopiedPath(path=location, mode=status.st_mode)
        if not stat.S_ISREG(status.st_mode):
            raise ContextError(f"'{shown}' is not a regular file", "Leave it out.")
        return CopiedPath(path=location, mode=status.st_mode, data=self._data(path, status, shown))

    def _data(self, path: Path, status: os.stat_result, shown: Path) -> bytes:
        self._taken += status.st_size
        if status.st_size > MAX_FILE_BYTES:
            raise ContextError(f"'{shown}' is larger than {MAX_FILE_BYTES >> 20} MiB", _LARGE)
        if self._taken > MAX_TOTAL_BYTES:
            message = f"with '{shown}', more than {MAX_TOTAL_BYTES >> 20} MiB are copied"
            raise ContextError(message, _LARGE)
        try:
            return small_file.read_bytes(path, MAX_FILE_BYTES)
        except OSError as error:
            message = f"'{shown}' cannot be read: {error.strerror}"
            raise ContextError(message, "Mend its mode.") from None

    def _inside(self, path: Path) -> Path:
        """Return the target of a path; a link that leads outside is refused."""
        real, top = Path(os.path.realpath(self.root / path)), Path(os.path.realpath(self.root))
        if not real.is_relative_to(top):
            raise ContextError(f"'{path}' is a link that leads out of the folder", "Copy the file.")
        if not real.exists():
            raise ContextError(f"'{path}' is a link that leads nowhere", "Mend or remove it.")
        return real

    def _is_ignored(self, path: Path) -> bool:
        """Return whether the last pattern for the path or a parent ignores it, as in Docker.

        The package's own matcher never looks at the folders between, and lets .dockerignore in.
        """
        names = [str(folder_path) for folder_path in (path, *path.parents) if folder_path != Path()]
        ignored = False
        for pattern in self._patterns:
            if any(map(pattern.match, names)):
                ignored = not pattern.exclusion
        return ignored


def _unescaped(line: str) -> str:
    """Return a line of .dockerignore without backslashes, which the package's matcher lacks."""
    # '!' inverts a pattern at its start only.
    start = "./" if line.startswith("\\!") else ""
    return start + re.sub(
        r"\\(.)", lambda match: f"[{match[1]}]" if match[1] in "*?[" else match[1], line
    )
