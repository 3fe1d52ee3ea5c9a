"""Caches for tests, and what builds do with them in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sifwright.make_image.cache import claims, leases
from sifwright.make_image.cache.store import Store
from sifwright.system import cache_folder
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.context import ForkServerProcess
    from types import FrameType

    import pytest

    from sifwright.make_image.cache.manifest import CacheEntry

FACTS = {"layer": "python", "site": "here", "image": "small", "seconds": 1.5}
PACKED, LISTING = "layer.squashfs", "files.json.gz"
_PACKAGE = str(Path(claims.__file__).parent)


def key_of(name: object) -> str:
    return sha256(str(name).encode()).hexdigest()


def contents(key: str) -> dict[str, bytes]:
    """Return the result of a step with this key, each time it is run."""
    seed = key.encode()
    return {PACKED: seed * 40, LISTING: b"listing of " + seed}


def new_store(root: Path, note: Callable[[str], None] = lambda _: None) -> Store:
    cache_folder.make(root)
    return Store(root=root, note=note)


def fill(folder: Path, key: str) -> None:
    for name, data in contents(key).items():
        (folder / name).write_bytes(data)


def add(store: Store, key: str, **facts: object) -> CacheEntry:
    with store.folder() as folder:
        fill(folder, key)
        return store.put(key, folder, {**FACTS, **facts})[0]


def obtain(store: Store, key: str, make: Callable[[Path], None]) -> CacheEntry:
    """Obtain an entry as a build does for each step."""
    while (entry := store.get(key)) is None:
        with claims.claim(store, key, on_wait=lambda _: None) as ours:
            if ours:
                with store.folder() as folder:
                    make(folder)
                    entry, _ = store.put(key, folder, FACTS)
    return entry


def spoil(path: Path, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(data)


def claim_file(store: Store, key: str, content: bytes, *, touched: float | None = None) -> Path:
    path = store.root / "claims" / key
    path.write_bytes(content)
    if touched is not None:
        os.utime(path, (touched, touched))
    return path


def is_right(entry: CacheEntry) -> bool:
    return all(entry.file(n).read_bytes() == data for n, data in contents(entry.key).items())


def leftovers(root: Path) -> list[str]:
    """Return all files that are no entry."""
    entries = [path.name for path in (root / "entries").iterdir() if path.name.startswith(".")]
    others = [path.name for name in ("claims", "leases") for path in (root / name).iterdir()]
    return entries + others


def count_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Count the pauses, from now on, of this process's threads that wait for a claim."""
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        time.sleep(seconds)

    monkeypatch.setattr(claims, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
    return pauses


# ---- other processes ------------------------------------------------------------------------

_CONTEXT = multiprocessing.get_context("forkserver")


@contextmanager
def running(target: Callable[..., None], *arguments: object) -> Iterator[ForkServerProcess]:
    """Start a process that is killed at the end, if it still runs."""
    process = _CONTEXT.Process(target=target, args=arguments)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def start(target: Callable[..., None], *arguments: object) -> ForkServerProcess:
    process = _CONTEXT.Process(target=target, args=arguments)
    process.start()
    return process


def build(root: Path, key: str, count: int, log: Path) -> None:
    """Obtain an entry; making it takes until so many builds have started, by the log."""

    def make(folder: Path) -> None:
        _append(log, "begin")
        assert wait_for(lambda: log.read_text().count("start") >= count)
        fill(folder, key)

    _append(log, "start")

    entry = obtain(new_store(root), key, make)
    _append(log, f"got {entry.digest(PACKED)} {is_right(entry)}")


def hold(root: Path, key: str, ready: Path) -> None:
    """Hold a claim, a lease and a folder."""
    store = new_store(root)
    with (
        leases.lease(store, [key]),
        claims.claim(store, key, on_wait=lambda _: None) as ours,
        store.folder() as folder,
    ):
        assert ours
        (folder / "half").write_text("made")
        ready.touch()
        time.sleep(600)


def killed_at_line(root: Path, key: str, line: int) -> None:
    """Obtain an entry and be killed before the store's n-th line is run."""
    _trace(line)
    obtain(Store(root=root), key, partial(fill, key=key))


def count_lines(root: Path, key: str, result: Path) -> None:
    """Count the lines of the store that obtain an entry, and tell which of them are of `put`."""
    seen = _trace(-1)
    obtain(Store(root=root), key, partial(fill, key=key))
    sys.settrace(None)
    result.write_text("".join("p" if put else "." for put in seen))


def _trace(fatal: int) -> list[bool]:
    """Note for each line of the store that is run from now on whether it is part of a `put`."""
    seen: list[bool] = []

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        if event == "line":
            seen.append(_in_put(frame))
            if len(seen) == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    return seen


def _in_put(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code is Store.put.__code__:
            return True
        frame = frame.f_back
    return False


def _append(log: Path, line: str) -> None:
    with log.open("a") as file:
        file.write(f"{line}\n")
