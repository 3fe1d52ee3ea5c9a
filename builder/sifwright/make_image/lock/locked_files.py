"""The folder with the files of a lock, each compared with its sha256; nothing else is in it."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from sifwright.images.contents.files_to_read import Readable
from sifwright.images.oci.oci_layout import blob_name
from sifwright.images.oci.streams import CheckedStream
from sifwright.make_image.cache.store import CacheEntry, Store
from sifwright.make_image.downloads.fetch_file import CONTENT, NotFetched
from sifwright.make_image.lock_format.lock_file import Lock
from sifwright.system import cache_folder

FIX = "Check the network and the mirrors, build from a bundle, or write the lock again."
POOL, WHEELS, SOURCES, GIT, IMAGE = "repository/pool", "wheels", "sources", "git", "image"


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedFile:
    """A file of a lock at a path of the folder; `shown` is how a message names it."""

    path: str
    sha256: str
    shown: str


def files_of(lock: Lock) -> dict[str, LockedFile]:
    """Return the files of a lock by path, without repositories of git and images of registries."""
    files = [
        *(_file(POOL, deb.file, deb.sha256, deb.file) for deb in lock.fetched_debs),
        *(_file(WHEELS, wheel.file, wheel.sha256, wheel.file) for wheel in lock.wheels),
        *(
            _file(SOURCES, source.digest, source.digest, f"source {source.name} {source.ref}")
            for source in lock.sources
            if source.kind != "git"
        ),
    ]
    return {file.path: file for file in files}


def _file(folder: str, name: str, sha256: str, shown: str) -> LockedFile:
    return LockedFile(path=f"{folder}/{name}", sha256=sha256, shown=shown)


def blob(digest: str) -> LockedFile:
    """Return a blob of the base image."""
    sha256 = digest.removeprefix("sha256:")
    return LockedFile(path=f"{IMAGE}/{blob_name(digest)}", sha256=sha256, shown=f"blob {digest}")


def keep(store: Store, file: LockedFile, stream: Readable) -> CacheEntry:
    """Copy a file into the cache; raises `NotFetched` if it is another one."""
    with store.folder() as staging, cache_folder.translate_errors(store.root):
        checked = CheckedStream(stream, "")
        with (staging / CONTENT).open("xb") as sink:
            shutil.copyfileobj(checked, sink)
        sha256 = checked.digest.removeprefix("sha256:")
        if sha256 != file.sha256:
            raise NotFetched(f"its sha256 is {sha256}, not {file.sha256}")
        return store.put(file.sha256, staging, {"name": file.shown})[0]


def place(folder: Path, file: LockedFile, entry: CacheEntry) -> None:
    """Give a file of the cache its name in the folder."""
    target = folder / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    os.link(entry.file(CONTENT), target)
