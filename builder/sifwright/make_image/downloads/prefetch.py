"""Fetch what the steps of a plan download while earlier ones run.

lock/collect_files.py fetches all files of a lock before the steps.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from html import escape
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from sifwright.catalog import mirrors
from sifwright.errors import MachineError
from sifwright.host.network import http, pip_settings, upstream
from sifwright.make_image.cache.leases import lease
from sifwright.make_image.cache.store import CacheEntry, Store
from sifwright.make_image.downloads import resolve_wheels
from sifwright.make_image.downloads.fetch_file import CONTENT, File, NotFetched, fetch, open_store
from sifwright.make_image.downloads.resolve_wheels import (
    LockedWheels,
    ResolvedLock,
    ResolveRequest,
    Wheel,
)
from sifwright.plan.model import Plan, StepSource
from sifwright.system import cache_folder, threads
from sifwright.system.tempdirs import workspace

T = TypeVar("T")

# Downloads at a time, as browsers have it: enough to fill a line, too few to annoy a server.
_AT_ONCE = 6
# Seconds that a step waits for its files before it goes on without those that are missing.
_PATIENCE = 1800.0
_JOIN_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _StepDownloads:
    """The downloads of a step, each file as it arrives.

    `whole`: see `LockedWheels`, `foreign`: see `ResolvedLock`.
    """

    wheels: Mapping[Wheel, Future[CacheEntry]] = field(default_factory=dict)
    sources: Mapping[str, Future[CacheEntry]] = field(default_factory=dict)
    whole: bool = True
    foreign: bool = False


@contextmanager
def fetching(
    plan: Plan, steps: range, *, work_dir: Path, log: Path, note: Callable[[str], None]
) -> Iterator[Prefetcher | None]:
    """Fetch in the background, inside, what the steps of these numbers download.

    `work_dir` is for files of its own, `note` gets what had to be dropped or cannot be done. Yields
    None if they download nothing that could be fetched.
    """
    settings = pip_settings.settings()
    # The engine alone runs the first step.
    numbers = [
        number
        for number in steps
        if number > 0
        and (
            resolve_wheels.question(plan, number, settings)
            or any(pinned_sources(plan.steps[number].sources))
        )
    ]
    if not numbers:
        yield None
        return
    ahead = Prefetcher(
        plan=plan,
        steps={number: Future() for number in numbers},
        store=open_store(note),
        work_dir=work_dir,
        log=log,
    )
    with ahead.at_work():
        yield ahead


@dataclass(kw_only=True)
class Prefetcher:
    """A fetcher of downloads: `steps` has the futures by the number of the step.

    A failed download is no error here, only a line in `log`: the step reports the error.
    """

    plan: Plan
    steps: Mapping[int, Future[_StepDownloads]]
    store: Store
    work_dir: Path
    log: Path
    _stop: threading.Event = field(default_factory=threading.Event)
    _slots: threading.Semaphore = field(default_factory=partial(threading.Semaphore, _AT_ONCE))
    _folders: ExitStack = field(default_factory=ExitStack)

    def folder(self, number: int) -> Path | None:
        """Wait for the downloads of a step, and return their folder; None without downloads.

        The folder stays until the end of the build. Raises `MachineError` if the cache cannot be
        used.
        """
        if number not in self.steps:
            return None
        try:
            downloads = self.steps[number].result(_PATIENCE)
        except MachineError:
            raise
        except Exception as error:  # noqa: BLE001  # a lock that is none, an index that lies
            with self.log.open("a", encoding="utf-8") as log:
                log.write(f"sifwright: nothing is fetched ahead: {http.redact_url(str(error))}\n")
            return None
        wait([*downloads.wheels.values(), *downloads.sources.values()], _PATIENCE)
        ready = self._ready(downloads.wheels, lambda wheel: wheel.name)
        # Some of them would let a layer think that the machine's settings lead to all.
        if downloads.foreign and not (downloads.whole and len(ready) == len(downloads.wheels)):
            ready = {}
        sources = self._ready(downloads.sources, str)
        if not ready and not sources:
            return None
        folder = self._folders.enter_context(self.store.folder())
        with cache_folder.translate_errors(self.store.root):
            _write_index(folder, ready, sources)
        return folder

    def _ready(
        self, downloads: Mapping[T, Future[CacheEntry]], name: Callable[[T], str]
    ) -> dict[T, CacheEntry]:
        """Return the downloads that have arrived; log these and the others."""
        ready: dict[T, CacheEntry] = {}
        with self.log.open("a", encoding="utf-8") as log:
            for item, future in downloads.items():
                try:
                    ready[item] = future.result(timeout=0)
                    log.write(f"sifwright: fetched {name(item)}\n")
                except TimeoutError:
                    log.write(f"sifwright: not fetched: {name(item)}: it is not there yet\n")
                except NotFetched as reason:
                    log.write(f"sifwright: not fetched: {name(item)}: {reason}\n")
        return ready

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Fetch inside; what is still on its way at the end is given up."""
        thread = threading.Thread(target=self._coordinate, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(_JOIN_SECONDS)
            self._folders.close()

    def _coordinate(self) -> None:
        """Settle the steps in their order; hold leases on their downloads until the end."""
        with ExitStack() as leases:
            for number, future in self.steps.items():
                if self._stop.is_set():
                    return
                threads.settle(future, partial(self._begun, number, leases))
            self._stop.wait()

    def _begun(self, number: int, leases: ExitStack) -> _StepDownloads:
        """Find out what a step downloads, and begin with it."""
        question = resolve_wheels.question(self.plan, number, pip_settings.settings())
        answer = self._answer(question) if question else None
        locked = LockedWheels(wheels=(), whole=True)
        if question and answer:
            locked = resolve_wheels.read(answer.lock, question.python, question.processor)
        sources = list(pinned_sources(self.plan.steps[number].sources))
        keys = [*(file.sha256 for file in locked.wheels), *(file.sha256 for file in sources)]
        leases.enter_context(lease(self.store, keys))
        return _StepDownloads(
            wheels={wheel: self._start(wheel.file) for wheel in locked.wheels},
            sources={file.sha256: self._start(file) for file in sources},
            whole=locked.whole,
            foreign=answer is not None and answer.foreign,
        )

    def _answer(self, question: ResolveRequest) -> ResolvedLock | None:
        """Return uv's answer, or that of today."""
        settings = pip_settings.settings()
        key = resolve_wheels.key(question, settings)
        if entry := self.store.get(key):
            return resolve_wheels.ResolvedLock(
                lock=entry.file(CONTENT).read_text(encoding="utf-8"),
                foreign=entry.manifest["foreign"],
            )
        try:
            with workspace(self.work_dir) as folder:
                answer = resolve_wheels.ask(question, settings, folder, self._stop)
        except OSError as error:
            # No uv, or no room for its files: the step's pip does without.
            self.store.note(f"wheels cannot be fetched ahead: {error.strerror or error}")
            return None
        if answer:
            with self.store.folder() as staging, cache_folder.translate_errors(self.store.root):
                (staging / CONTENT).write_text(answer.lock, encoding="utf-8")
                facts = {"name": f"lock of {question.requirements[0]}", "foreign": answer.foreign}
                self.store.put(key, staging, facts)
        return answer

    def _start(self, file: File) -> Future[CacheEntry]:
        settings = pip_settings.settings()

        def fetch_in_turn() -> CacheEntry:
            with self._slots:
                return fetch(self.store, file, settings, self._stop)

        return threads.start(fetch_in_turn)


def pinned_sources(sources: Iterable[StepSource]) -> Iterator[File]:
    for source in sources:
        if source.kind != "git" and source.digest:
            yield File(
                name=f"source {source.name} {source.version}",
                sha256=source.digest,
                locate=partial(_address, source),
            )


def _address(source: StepSource) -> str:
    """Return its address or its mirror's; raises `LookupFailedError`."""
    is_sdist = source.kind == "pip"
    address = upstream.sdist_of(source.url, source.version).address if is_sdist else source.url
    return mirrors.redirect_download(address)


# An index, not a folder for find-links. If several indexes have a wheel, pip takes the last index.
# It takes a folder of find-links before any index (tried with pip 20.3 to 26.3).
def _write_index(
    folder: Path, wheels: Mapping[Wheel, CacheEntry], sources: Mapping[str, CacheEntry]
) -> None:
    """Link the files into a folder on the cache's file system; `sources` are by their sha256."""
    for wheel, entry in wheels.items():
        package_folder = folder / "wheels" / wheel.package
        package_folder.mkdir(parents=True)
        os.link(entry.file(CONTENT), package_folder / wheel.name)
        # A page of PEP 503; pip compares the file with the digest.
        link = f'<a href="{quote(wheel.name)}#sha256={wheel.sha256}">{escape(wheel.name)}</a>'
        page = f"<!DOCTYPE html><html><body>{link}</body></html>\n"
        (package_folder / "index.html").write_text(page, encoding="utf-8")
    for sha256, entry in sources.items():
        (folder / "sources").mkdir(exist_ok=True)
        os.link(entry.file(CONTENT), folder / "sources" / sha256)
