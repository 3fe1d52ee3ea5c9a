"""Repositories of git that a lock names: one pack for each commit, and repositories of packs."""

import hashlib
import posixpath
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sifwright.errors import BuildError
from sifwright.host.network import upstream
from sifwright.host.network.upstream import LookupFailedError
from sifwright.make_image.cache.store import CacheEntry, Store
from sifwright.make_image.downloads.fetch_file import CONTENT
from sifwright.make_image.lock.locked_files import GIT
from sifwright.make_image.lock_format.lock_file import Lock, LockedSource
from sifwright.system import cache_folder, processes
from sifwright.system.tempdirs import workspace

_REF = "refs/heads/locked"
_ALL = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
_FIX = "Check the network and the mirrors, or build from a bundle."


def names(lock: Lock) -> dict[str, LockedSource]:
    """Return the packs of a lock by their path in its folder."""
    return {f"{GIT}/{item.digest}.pack": item for item in lock.sources if item.kind == "git"}


def with_submodules(source: LockedSource, store: Store) -> Iterator[LockedSource]:
    """Yield a repository with those of its submodules, at any depth."""
    yield source
    with workspace(store.root) as folder:
        repository = _restored(source, _entry(source, store).file(CONTENT), folder / "r")
        tree = _git(repository, "ls-tree", "-r", source.digest)
        links = re.findall(r"^160000 commit ([0-9a-f]+)\t(.*)$", tree, re.MULTILINE)
        if not links:
            return
        blob = f"--blob={source.digest}:.gitmodules"
        lines = _git(repository, "config", blob, "--list").splitlines()
        settings = dict(line.partition("=")[::2] for line in lines)
    paths = {settings[key]: key.removesuffix("path") for key in settings if key.endswith(".path")}
    for commit, path in links:
        if address := settings.get(f"{paths.get(path)}url"):
            below = replace(
                source,
                name=f"{source.name}/{path}",
                address=_resolved(source.address, address),
                ref=commit,
                digest=commit,
            )
            yield from with_submodules(below, store)


def _resolved(parent: str, address: str) -> str:
    """Return a submodule's address, which may be relative to its repository's."""
    if not address.startswith(("./", "../")):
        return address
    scheme, separator, rest = parent.rpartition("://")
    return f"{scheme}{separator}{posixpath.normpath(posixpath.join(rest, address))}"


def collect(lock: Lock, store: Store, folder: Path, *, offline: bool) -> None:
    """Fetch the packs of a lock into its folder; raises `BuildError`."""
    for path, source in names(lock).items():
        (folder / path).parent.mkdir(exist_ok=True)
        entry = store.get(_key(source)) if offline else _entry(source, store)
        if entry is None:
            raise _refusal(source, "it is not in the cache of downloads, and no network is used")
        shutil.copyfile(entry.file(CONTENT), folder / path)


def _key(source: LockedSource) -> str:
    return hashlib.sha256(f"git {source.digest}".encode()).hexdigest()


def _entry(source: LockedSource, store: Store) -> CacheEntry:
    """Return the pack in the cache; fetch the one commit, else all of the repository."""
    if entry := store.get(_key(source)):
        return entry
    with workspace(store.root) as folder:
        repository = folder / "r.git"
        try:
            upstream.git("init", "--quiet", "--bare", str(repository))
            try:
                _git(repository, "fetch", "--depth=1", "--", source.address, source.digest)
            except LookupFailedError:
                _git(repository, "fetch", "--", source.address, *_ALL)
            _git(repository, "update-ref", _REF, f"{source.digest}^{{commit}}")
            _git(repository, "repack", "-adq")
        except LookupFailedError as error:
            raise _refusal(source, f"it is not there as locked: {error}") from None
        (pack,) = (repository / "objects" / "pack").glob("*.pack")
        with store.folder() as staging, cache_folder.translate_errors(store.root):
            shutil.copyfile(pack, staging / CONTENT)
            return store.put(_key(source), staging, {"name": f"source {source.name}"})[0]


def restore(lock: Lock, folder: Path) -> dict[str, str]:
    """Make repositories of the packs in a folder; return their folders by address.

    Git computes the name of each object from its bytes, so only the right pack has the commit.
    Raises `BuildError` for another pack.
    """
    repositories: dict[str, str] = {}
    for path, source in names(lock).items():
        repository = folder / GIT / hashlib.sha256(source.address.encode()).hexdigest()
        _restored(source, folder / path, repository)
        repositories[source.address] = str(repository)
    return repositories


def _restored(source: LockedSource, pack: Path, repository: Path) -> Path:
    """Add a pack to a bare repository, with a branch and its tag for the commit."""
    commit = source.digest
    try:
        if not repository.exists():
            upstream.git("init", "--quiet", "--bare", "--initial-branch=locked", str(repository))
        target = repository / "objects" / "pack" / f"pack-{commit}.pack"
        shutil.copyfile(pack, target)
        _git(repository, "index-pack", str(target))
        head = _git(repository, "cat-file", "commit", commit)
        parent = re.search(r"^parent (\S+)$", head, re.MULTILINE)
        if parent and not _has(repository, parent[1]):
            with (repository / "shallow").open("a", encoding="utf-8") as file:
                file.write(f"{commit}\n")
        _git(repository, "rev-list", "--objects", "--quiet", commit)
        _git(repository, "update-ref", _REF, commit)
        _git(repository, "update-ref", f"refs/heads/{commit}", commit)
        if source.ref != commit:
            _git(repository, "update-ref", f"refs/tags/{source.ref}", commit)
    except (LookupFailedError, OSError) as error:
        raise _refusal(source, f"what is there is not commit {commit}: {error}") from None
    return repository


def _has(repository: Path, commit: str) -> bool:
    command = ["git", "-C", str(repository), "cat-file", "-e", commit]
    return processes.capture(command).returncode == 0


def _git(repository: Path, *arguments: str) -> str:
    return upstream.git("-C", str(repository), *arguments)


def _refusal(source: LockedSource, message: str) -> BuildError:
    where = f"source {source.name} of layer '{source.layer}'"
    return BuildError.of(message, where=where, fix=_FIX)
