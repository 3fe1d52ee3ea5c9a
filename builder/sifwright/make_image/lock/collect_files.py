"""Fill the folder of a lock from the cache of downloads and the network."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Event

from sifwright.catalog.mirrors import redirect_download
from sifwright.errors import BuildError, Problem
from sifwright.host.network import pip_settings
from sifwright.make_image.cache.leases import lease
from sifwright.make_image.cache.manifest import CacheEntry
from sifwright.make_image.cache.store import Store
from sifwright.make_image.downloads import prefetch
from sifwright.make_image.downloads.fetch_file import File, NotFetched, fetch
from sifwright.make_image.lock import debian, locked_files, locked_image
from sifwright.make_image.lock.find_wheels import WheelIndex
from sifwright.make_image.lock.locked_files import LockedFile
from sifwright.make_image.lock_format.lock_file import Lock
from sifwright.make_image.resolve_request.build_request import BuildRequest
from sifwright.plan.model import Plan

Locate = Callable[[], str]

_AT_ONCE = 6


def collect(
    lock: Lock, request: BuildRequest, store: Store, folder: Path, *, offline: bool
) -> None:
    """Fill the folder; raises `BuildError` with every file that is not there as it was locked."""
    files = locked_files.files_of(lock)
    missing = {file.sha256 for file in files.values() if store.peek(file.sha256) is None}
    addresses = {} if offline else _addresses(lock, request.plan, missing)
    with ExitStack() as stack, ThreadPoolExecutor(_AT_ONCE) as threads:
        stack.enter_context(lease(store, [file.sha256 for file in files.values()]))
        results = list(threads.map(partial(_fetched, store, addresses), files.values()))
        if problems := [problem for problem in results if isinstance(problem, Problem)]:
            raise BuildError(*problems)
        for file, entry in zip(files.values(), results, strict=True):
            if isinstance(entry, CacheEntry):
                locked_files.place(folder, file, entry)
    if reference := request.base.reference:
        located = reference.at(lock.base["digest"])
        locked_image.collect(located, lock.processor, store, folder, offline=offline)


def _fetched(
    store: Store, addresses: Mapping[str, Locate], file: LockedFile
) -> CacheEntry | Problem:
    """Return the file in the cache, or why it is not there."""
    if entry := store.get(file.sha256):
        return entry
    try:
        return _fetch(store, file, addresses.get(file.sha256, _offline))
    except NotFetched as error:
        message = f"it is not there as locked: {error}"
        return Problem(where=file.shown, what=message, fix=locked_files.FIX)


def _fetch(store: Store, file: LockedFile, locate: Locate) -> CacheEntry:
    address = locate()
    if address.startswith("file://"):
        try:
            with open(address.removeprefix("file://"), "rb") as stream:  # noqa: PTH123
                return locked_files.keep(store, file, stream)
        except OSError as error:
            raise NotFetched(str(error)) from None
    wanted = File(name=file.shown, sha256=file.sha256, locate=lambda: address)
    is_deb = file.path.startswith(locked_files.POOL)
    return fetch(store, wanted, {} if is_deb else pip_settings.settings(), Event())


def _offline() -> str:
    raise NotFetched("no network is used, and it is not in the cache of downloads")


def _addresses(lock: Lock, plan: Plan, missing: set[str]) -> dict[str, Locate]:
    """Return how to find the address of each file, by sha256."""
    sources = {
        file.sha256: file.locate
        for step in plan.steps
        for file in prefetch.pinned_sources(step.sources)
    }
    return {
        **{deb.sha256: partial(debian.address, deb) for deb in lock.fetched_debs},
        **{item.digest: partial(redirect_download, item.address) for item in lock.sources},
        **sources,
        **_wheel_addresses(lock, plan, missing),
    }


def _wheel_addresses(lock: Lock, plan: Plan, missing: set[str]) -> dict[str, Locate]:
    """Ask this machine's indexes; what they lack may still be where it was locked from."""
    wheels = [wheel for wheel in lock.wheels if wheel.sha256 in missing]
    if not wheels:
        return {}
    answers = wheel_index(plan).offers((wheel.name, wheel.version) for wheel in wheels)
    offers = [offer for of_version in answers.values() for offer in of_version]
    addresses: dict[str, Locate] = {}
    for wheel in wheels:
        # A file with another name may have the digest.
        same = next((offer.address for offer in offers if offer.sha256 == wheel.sha256), "")
        others = [offer.sha256 for offer in offers if offer.file == wheel.file]
        wrong = f"its sha256 is {others[0]}, not {wheel.sha256}" if others else ""
        elsewhere = "" if others else wheel.url
        addresses[wheel.sha256] = partial(
            _or_raise, same or elsewhere, wrong or "no index of this machine has it"
        )
    return addresses


def _or_raise(address: str, message: str) -> str:
    if not address:
        raise NotFetched(message)
    return address


def wheel_index(plan: Plan) -> WheelIndex:
    """Return the indexes that the steps of a plan use."""
    indexes = (redirect_download(index) for step in plan.steps for _, index in step.packages())
    return WheelIndex(
        python=plan.facts.get("python", ""),
        processor=plan.site.processor,
        indexes=tuple(dict.fromkeys(filter(None, indexes))),
    )
