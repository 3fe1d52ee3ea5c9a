"""The manifest of an entry: what is in its files, and what it was made from.

It holds its own digest and is written in one way only. So a changed bit is noticed in the manifest
as well as in the files.
"""

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from sifwright.make_image.pack_layers.pack import BYTES_PER_FILE
from sifwright.plan.source_digest import SourceDigest
from sifwright.system import cache_folder, files, small_file
from sifwright.system.cache_folder import ENTRIES

NAME = "manifest.json"
KEY = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# Errors of reading a file that is missing or not whole: only the entry is to blame.
_BROKEN = {errno.EIO, errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.EISDIR, errno.ELOOP}


class EntryDamagedError(Exception):
    """An entry is not what was stored; the text says which file and what is wrong with it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheEntry:
    """The result of a step. `used` is the time of its last use, in seconds since the epoch.

    The manifest has `files` ({name: {bytes, sha256}}) and `made` (a time in ISO 8601). The build
    adds facts of the step, such as `layer`, `image`, `site` and `seconds`.
    """

    key: str
    folder: Path
    manifest: Mapping[str, Any]
    used: float

    @property
    def bytes(self) -> int:
        return sum(file["bytes"] for file in self.manifest["files"].values())

    @property
    def unpacked(self) -> int:
        """Return the bytes that the result takes as files."""
        size = self.manifest["unpacked"]
        return int(size["bytes"] + size["entries"] * BYTES_PER_FILE)

    @property
    def sources(self) -> list[SourceDigest]:
        return [SourceDigest(**source) for source in self.manifest["used"]]

    def file(self, name: str) -> Path:
        return self.folder / name

    def digest(self, name: str) -> str:
        """Return the sha256 that the file has if the entry is whole."""
        return str(self.manifest["files"][name]["sha256"])


@dataclass(frozen=True, kw_only=True, slots=True)
class Entries:
    """The entries of a cache in one folder, as claims and leases see them."""

    root: Path
    is_read_only: bool = False

    def path(self, key: str) -> Path:
        if not KEY.fullmatch(key):
            raise ValueError(f"no key of a step: {key!r}")
        return self.root / ENTRIES / key

    def peek(self, key: str) -> CacheEntry | None:
        """Return the entry if it looks whole; read none of its files, drop nothing."""
        with cache_folder.translate_errors(self.root):
            try:
                return load(key, self.path(key))
            except EntryDamagedError:
                return None


def create(key: str, folder: Path, facts: Mapping[str, Any]) -> None:
    """Write the manifest for the files in the folder; all of it reaches the disk.

    Raises `ValueError` for what is no regular file, or has a name that needs quoting.
    """
    files_by_name = {path.name: _stored(path) for path in sorted(folder.iterdir())}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    document = {"made": now, **facts, "key": key, "files": files_by_name}
    with (folder / NAME).open("xb") as file:
        file.write(_encoded(document))
        file.flush()
        _finish(file.fileno())


def load(key: str, folder: Path) -> CacheEntry:
    """Read the manifest and compare the sizes of the files; raises `EntryDamagedError`."""
    document, used = _read(folder / NAME)
    if document.get("key") != key or not _is_sound(document.get("files")):
        raise EntryDamagedError(f"{NAME} is not this step's")
    entry = CacheEntry(key=key, folder=folder, manifest=document, used=used)
    for name, facts in document["files"].items():
        if _size(entry.file(name)) != facts["bytes"]:
            raise EntryDamagedError(f"{name} has another size than was stored")
    return entry


def check_digests(entry: CacheEntry) -> None:
    """Read every file of the entry; raises `EntryDamagedError` if one has changed."""
    for name in entry.manifest["files"]:
        try:
            digest = files.sha256(entry.file(name))
        except OSError as error:
            _blame(name, error)
        if digest != entry.digest(name):
            raise EntryDamagedError(f"{name} has other bytes than were stored")


def _stored(path: Path) -> dict[str, object]:
    if not _NAME.fullmatch(path.name) or _size(path) < 0:
        raise ValueError(f"an entry holds regular files with plain names only: {path.name!r}")
    with path.open("rb") as file:
        _finish(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": digest}


def _finish(descriptor: int) -> None:
    """Make it read-only under any umask, and sync it, so that it survives a power cut."""
    os.fchmod(descriptor, 0o444)
    os.fsync(descriptor)


def _encoded(document: Mapping[str, Any]) -> bytes:
    text = json.dumps(document, sort_keys=True, allow_nan=False)
    signed = {**json.loads(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    return (json.dumps(signed, sort_keys=True, indent=1) + "\n").encode()


def _read(path: Path) -> tuple[dict[str, Any], float]:
    try:
        content, status = small_file.read_with_status(path)
    except small_file.NotSmallError as error:
        raise EntryDamagedError(f"{NAME} is {error.strerror}") from None
    except OSError as error:
        _blame(NAME, error)
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        document = small_file.parse_json(content)
        document.pop("sha256")
        if _encoded(document) == content:
            return document, status.st_mtime
    raise EntryDamagedError(f"{NAME} has other bytes than were stored")


def _is_sound(files: object) -> bool:
    """Return whether these are names of files in a folder, with their sizes and digests."""
    return isinstance(files, dict) and all(
        _NAME.fullmatch(name)
        and isinstance(facts, dict)
        and isinstance(facts.get("bytes"), int)
        and isinstance(facts.get("sha256"), str)
        for name, facts in files.items()
    )


def _size(path: Path) -> int:
    """Return the size in bytes, or -1 for anything but a regular file."""
    try:
        status = path.lstat()
    except OSError as error:
        _blame(path.name, error)
    # Reading a pipe would never end.
    return status.st_size if stat.S_ISREG(status.st_mode) else -1


def _blame(name: str, error: OSError) -> NoReturn:
    """Raise `EntryDamagedError` if the entry is damaged; a fault of the machine drops no entry."""
    if error.errno in _BROKEN:
        raise EntryDamagedError(f"{name}: {error.strerror}") from error
    raise error
