"""A bundle: the lock and the files that it names, as one tar for machines without a network."""

import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sifwright.errors import BuildError
from sifwright.images.contents.image_tree import BadImage
from sifwright.images.oci.oci_layout import blob_name
from sifwright.make_image.cache.store import Store
from sifwright.make_image.downloads.fetch_file import NotFetched
from sifwright.make_image.lock import git_packs, locked_files, locked_image
from sifwright.make_image.lock.locked_files import LockedFile
from sifwright.make_image.lock_format import lock_file
from sifwright.make_image.lock_format.lock_file import Lock, LockedSource

Expected = dict[str, LockedFile | LockedSource]

LOCK, AUDIT = "pylock.toml", "audit"
_MOST_LOCK = 64 << 20
_BLOB = re.compile(rf"{locked_files.IMAGE}/blobs/sha256/([0-9a-f]{{64}})")
_FIX = "Copy it again, or write it again with 'sifwright bundle'; nothing was built."


def write(lock: Lock, folder: Path, target: Path, audit: Path | None) -> None:
    """Write the files of a lock, which are in the folder; the lock itself is first."""
    lock_file.write(lock, folder / LOCK)
    blobs = sorted((folder / locked_files.IMAGE / "blobs").rglob("*"))
    names = [
        *sorted(locked_files.files_of(lock)),
        *sorted(git_packs.names(lock)),
        *(str(path.relative_to(folder)) for path in blobs if path.is_file()),
    ]
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for name in (LOCK, *names):
            _add(archive, folder / name, name, lock.epoch)
        for path in sorted(audit.rglob("*")) if audit else ():
            if audit and path.is_file():
                _add(archive, path, f"{AUDIT}/{path.relative_to(audit)}", lock.epoch)


def _add(archive: tarfile.TarFile, path: Path, name: str, epoch: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = path.stat().st_size, epoch, 0o644
    with path.open("rb") as file:
        archive.addfile(member, file)


def lock_of(path: Path) -> Lock:
    """Return the lock in a bundle; raises `BuildError` for what is no bundle."""
    with _opened(path) as archive:
        member = archive.next()
        if member is None or member.name != LOCK or member.size > _MOST_LOCK:
            raise _refusal(path, "it does not begin with a lock, so it is no bundle")
        content = archive.extractfile(member)
        return lock_file.parse(content.read().decode() if content else "", f"{LOCK} of {path}")


def unpack(path: Path, lock: Lock, store: Store, folder: Path) -> None:
    """Fill the folder of a lock from a bundle; each file is compared with the lock.

    Raises `BuildError` for a bundle that lacks a file, has others, or links.
    """
    missing: Expected = {**locked_files.files_of(lock), **git_packs.names(lock)}
    blobs: set[str] = set()
    with _opened(path) as archive:
        for member in archive:
            file = _expected(path, member, missing, blobs)
            content = archive.extractfile(member)
            if file is None or content is None:
                continue
            if isinstance(file, LockedSource):
                # Git compares it with its commit.
                _copy(content, folder / member.name)
                continue
            try:
                entry = locked_files.keep(store, file, content)
            except NotFetched as error:
                raise _refusal(path, f"{member.name}: {error}") from None
            locked_files.place(folder, file, entry)
    _finish_image(path, lock, folder, blobs)
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise _refusal(path, f"it lacks {next(iter(missing))}{more}")


def _expected(
    path: Path, member: tarfile.TarInfo, missing: Expected, blobs: set[str]
) -> LockedFile | LockedSource | None:
    """Return what a member has to be; None for one that no build reads."""
    if not member.isfile():
        raise _refusal(path, f"{member.name} is no plain file")
    first, *others = member.name.split("/")
    if member.name == LOCK or (first == AUDIT and others and ".." not in others):
        return None
    if match := _BLOB.fullmatch(member.name):
        blobs.add(f"sha256:{match[1]}")
        return locked_files.blob(f"sha256:{match[1]}")
    if file := missing.pop(member.name, None):
        return file
    raise _refusal(path, f"it has {member.name}, which the lock does not name")


def _copy(content: IO[bytes], target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    with target.open("xb") as sink:
        shutil.copyfileobj(content, sink)


def _finish_image(path: Path, lock: Lock, folder: Path, blobs: set[str]) -> None:
    """Write the index of the base image, if all its blobs are there."""
    digest = lock.base.get("digest", "")
    if lock.base["bootstrap"] != "docker":
        if blobs:
            raise _refusal(path, "it has an image, and the lock names none")
        return

    def text(wanted: str) -> bytes:
        if wanted not in blobs:
            raise _refusal(path, f"it lacks {wanted} of the base image")
        return (folder / locked_files.IMAGE / blob_name(wanted)).read_bytes()

    try:
        manifest = locked_image.manifest_of(digest, lock.processor, text)
    except BadImage as error:
        raise _refusal(path, f"its base image {digest}: {error}") from None
    for blob in (manifest.config, *manifest.layers):
        if blob.digest not in blobs:
            raise _refusal(path, f"it lacks {blob.digest} of the base image")
    locked_image.write_layout(folder, manifest)


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    """Open a tar without compression; its damage is a `BuildError`."""
    try:
        with tarfile.open(path, "r:") as archive:
            yield archive
    except (tarfile.TarError, UnicodeDecodeError, EOFError) as error:
        raise _refusal(path, f"it is damaged or no bundle: {error}") from None
    except OSError as error:
        raise _refusal(path, f"it cannot be read: {error.strerror or error}") from None


def _refusal(path: Path, message: str) -> BuildError:
    return BuildError.of(message, where=str(path), fix=_FIX)
