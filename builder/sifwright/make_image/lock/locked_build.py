"""Build from the files of a lock only: for a build, they are a mirror of everything."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sifwright.catalog import image_name, mirrors
from sifwright.errors import BuildError
from sifwright.host.network.apt_mirror import DEBIAN, SECURITY
from sifwright.make_image.downloads.fetch_file import open_store
from sifwright.make_image.lock import (
    bundle,
    collect_files,
    compare_locks,
    deb_repository,
    git_packs,
    locked_files,
)
from sifwright.make_image.lock_format import lock_file
from sifwright.make_image.lock_format.lock_file import Lock
from sifwright.make_image.resolve_request.build_request import BuildRequest
from sifwright.plan.model import Plan
from sifwright.system import files
from sifwright.system.progress import Progress
from sifwright.system.tempdirs import name_folder_in_errors

_MIRRORS = "mirrors.yaml"


@contextmanager
def locked_request(
    request: BuildRequest, bundled: Path | None, progress: Progress, *, offline: bool
) -> Iterator[BuildRequest]:
    """Yield the request of a build from the files of its lock, which are there inside.

    They come from the bundle, else from the cache and the network. Raises `BuildError` before
    anything is written if one is not as it was locked.
    """
    lock = request.options.lock
    if lock is None:
        yield request
        return
    refuse_other_plan(lock, request.plan)
    with locked_folder(request, lock, bundled, offline=offline) as folder:
        count = len(locked_files.files_of(lock))
        progress.note(f"locked: {count} files, all as in the lock {lock.digest[:12]}")
        options = replace(request.options, files=folder)
        base = replace(request.base, reference=None)
        with _mirrored(folder / _MIRRORS):
            yield replace(request, options=options, base=base)


@contextmanager
def locked_folder(
    request: BuildRequest, lock: Lock, bundled: Path | None, *, offline: bool
) -> Iterator[Path]:
    """Yield the folder with the files of a lock, and with what leads a build to them."""
    store = open_store()
    with store.folder() as folder:
        if bundled:
            bundle.unpack(bundled, lock, store, folder)
        else:
            collect_files.collect(lock, request, store, folder, offline=offline)
            git_packs.collect(lock, store, folder, offline=offline)
        repository = folder / "repository"
        repository.mkdir(exist_ok=True)
        deb_repository.write(
            repository, lock.fetched_debs, lock.archives, lock.processor, lock.epoch
        )
        (folder / locked_files.WHEELS).mkdir(exist_ok=True)
        # The machine's addresses of registries may hold a login.
        rules = json.dumps(_rules(request, lock, folder), indent=1)
        files.write_private(folder / _MIRRORS, rules.encode())
        folder.chmod(0o755)
        yield folder


def write_bundle(request: BuildRequest, lock: Lock, target: Path, audit: Path | None) -> None:
    """Write the bundle of a lock; raises `BuildError` if a file is not there as locked."""
    refuse_other_plan(lock, request.plan)
    if lock.base["bootstrap"] not in {"debootstrap", image_name.REGISTRY}:
        fix = "Start from the image in a registry."
        raise BuildError.of("the base image is a file of this machine", where=target.name, fix=fix)
    with (
        locked_folder(request, lock, None, offline=False) as folder,
        name_folder_in_errors(target.parent, "Free space there, or choose another file."),
        tempfile.TemporaryDirectory(prefix=".sifwright-", dir=target.parent) as staging,
    ):
        finished = Path(staging, target.name)
        bundle.write(lock, folder, finished, audit)
        files.publish(finished, target)


def _rules(request: BuildRequest, lock: Lock, folder: Path) -> dict[str, dict[str, object]]:
    """Return a mirrors file that leads to the folder only."""
    named = request.base.step.header.get("MirrorURL", "")
    places = {DEBIAN, SECURITY, *filter(None, [named]), *(item.address for item in lock.archives)}
    sources = {
        item.address: str(folder / locked_files.SOURCES / item.digest)
        for item in lock.sources
        if item.kind == "archive"
    }
    rules: dict[str, dict[str, object]] = {
        "apt": dict.fromkeys(sorted(places), str(folder / "repository")),
        "archives": dict(sources),
        "git": {**git_packs.restore(lock, folder)},
        "oci": {rule.source: rule.target for rule in mirrors.load().of("oci")},
        "pip": {"no-index": True, "find-links": str(folder / locked_files.WHEELS)},
    }
    return {kind: values for kind, values in rules.items() if values}


@contextmanager
def _mirrored(file: Path) -> Iterator[None]:
    """Let a mirrors file be that of this process inside."""
    before = os.environ.get(mirrors.VARIABLE)
    os.environ[mirrors.VARIABLE] = str(file)
    try:
        yield
    finally:
        if before is None:
            del os.environ[mirrors.VARIABLE]
        else:
            os.environ[mirrors.VARIABLE] = before


def refuse_other_plan(lock: Lock, plan: Plan) -> None:
    """Raise `BuildError` for a lock of another image, or of another plan of this one."""
    if (lock.site, lock.image) != (plan.site.name, plan.image.name):
        message = f"it is the lock of '{lock.image}' for site '{lock.site}'"
        raise _refusal(f"{message}, not of '{plan.image.name}' for '{plan.site.name}'")
    if lock.plan == plan.id:
        return
    now = {step.layer.name: step.id for step in plan.steps}
    names = [name for name in (*lock.layers, *now) if lock.layers.get(name) != now.get(name)]
    first = next(iter(names), "none")
    message = f"the plan has changed since it was locked: layer '{first}' is the first to differ"
    raise _refusal(message)


def _refusal(message: str) -> BuildError:
    fix = "Give the options that it was made with, or write it again with 'sifwright lock'."
    return BuildError.of(message, where="the lock", fix=fix)


def default_path(project: Path, site: str, image: str) -> Path:
    """Return where the lock of an image is kept."""
    return project / "locks" / f"pylock.{site}-{image}.toml"


def lock_of(bundled: Path | None, file: Path | None) -> Lock:
    """Return the lock of a bundle or a file; if both are given, they must be the same."""
    locks = [bundle.lock_of(bundled)] if bundled else []
    locks += [lock_file.read(file)] if file else []
    if lines := compare_locks.changes(locks[-1], locks[0]):
        shown = "\n    ".join(lines[:20])
        fix = "Build with the lock of the bundle (leave out --locked), or bundle again."
        raise BuildError.of(
            f"the bundle is of another lock\n    {shown}", where=str(bundled), fix=fix
        )
    return locks[0]
