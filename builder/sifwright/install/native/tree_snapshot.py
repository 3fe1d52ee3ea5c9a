"""The files of an installation after its last finished step, so that a killed one can go on."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

from sifwright.system import files, small_file

# Limit of a snapshot, which has some 100 bytes for each file of an installation.
_MOST_BYTES = 256 << 20
# Inode, size, and two times in nanoseconds. Nobody can set the second, of any change (inode(7)).
State = dict[str, list[int]]


def write_snapshot(folder: Path, path: Path, steps: list[str]) -> None:
    """Record the finished steps and the state of every file below the folder."""
    text = json.dumps({"steps": steps, "files": _state(folder)})
    files.write(path, text.encode(), mode=0o644)


def write_names(folder: Path, path: Path) -> None:
    """Record the names of all files and folders below the folder."""
    files.write(path, json.dumps(sorted(_state(folder))).encode(), mode=0o644)


def add_names(path: Path, names: set[str]) -> None:
    """Add names of files that are to be written; without a record, none is kept."""
    if (recorded := read_names(path)) is not None:
        files.write(path, json.dumps(sorted(recorded | names)).encode(), mode=0o644)


def drop_names(folder: Path, path: Path) -> None:
    """Drop names of files that are not there: an update was killed before it wrote them."""
    if (recorded := read_names(path)) is not None:
        there = {name for name in recorded if os.path.lexists(folder / name)}
        files.write(path, json.dumps(sorted(there)).encode(), mode=0o644)


def read_names(path: Path) -> set[str] | None:
    """Return the recorded names; None without a record."""
    try:
        return set(map(str, small_file.read_json(path, _MOST_BYTES)))
    except (OSError, ValueError, TypeError):
        return None


def resume(folder: Path, path: Path) -> list[str]:
    """Return the finished steps, and remove the files of an unfinished one.

    If a recorded file has changed or is gone, all is removed, and no step counts.
    """
    recorded, steps = _read(path)
    state = _state(folder)
    if any(state.get(name) != entry for name, entry in recorded.items()) or not steps:
        if folder.exists():
            shutil.rmtree(folder)
        return []
    for name in sorted(state.keys() - recorded.keys(), reverse=True):
        remove_entry(folder / name)
    return steps


def recorded_bytes(path: Path) -> int:
    """Return the size of all recorded files; 0 without a record."""
    return sum(entry[1] for entry in _read(path)[0].values() if entry)


def changed(folder: Path, path: Path) -> list[str]:
    """Return the recorded files that are gone, or have another size or time; no bytecode.

    Without a record, return its path.
    """
    state, (recorded, _) = _state(folder), _read(path)
    if not recorded:
        return [str(path)]
    wrong = {name for name, now in recorded.items() if now and state.get(name, [])[1:3] != now[1:3]}
    return _without_bytecode(wrong)


def missing_names(folder: Path, path: Path, names: Path) -> list[str]:
    """Return those of the recorded names that are gone and no file of a step; no bytecode."""
    others = (read_names(names) or set()) - _read(path)[0].keys()
    return _without_bytecode({name for name in others if not os.path.lexists(folder / name)})


def _without_bytecode(names: set[str]) -> list[str]:
    return sorted(name for name in names if not name.endswith((".pyc", "__pycache__")))


def _read(path: Path) -> tuple[State, list[str]]:
    """Return the recorded files and the finished steps; none of both without a record."""
    try:
        snapshot = small_file.read_json(path, _MOST_BYTES)
        return snapshot["files"], list(snapshot["steps"])
    except (OSError, ValueError, LookupError, TypeError):
        return {}, []


def remove_entry(path: Path) -> None:
    """Remove a file, a link or an empty folder."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()


def _state(folder: Path) -> State:
    """Return the state of files and links; the state of folders is empty."""
    state: State = {}
    start = len(str(folder)) + 1
    for top, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = os.path.join(top, name)  # noqa: PTH118  # a Path takes three times as long
            status = os.lstat(path)
            is_folder = stat.S_ISDIR(status.st_mode)
            times = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
            state[path[start:]] = [] if is_folder else times
    return state
