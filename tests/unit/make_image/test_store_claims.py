"""Many builds, one cache: each step is made once; a build that dies during a step is replaced."""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.errors import MachineError
from sifwright.make_image.cache import claims
from sifwright.system import liveness
from sifwright.system.liveness import ProcessIdentity
from tests.unit.stores import (
    add,
    build,
    claim_file,
    count_pauses,
    key_of,
    leftovers,
    start,
)
from tests.waiting import LIMIT_SECONDS, wait_for

if TYPE_CHECKING:
    from sifwright.make_image.cache.store import Store

KEY = key_of("a step")
OLD = 1_000_000.0


def can_claim(store: Store) -> bool:
    with claims.try_claim(store.root, KEY) as ours:
        return ours


# ---- at once --------------------------------------------------------------------------------


@pytest.mark.all
def test_eight_builds_make_a_step_once(store: Store, tmp_path: Path) -> None:
    """Make it once (R3)."""
    log = tmp_path / "log"
    started = [start(build, store.root, KEY, 8, log) for _ in range(8)]
    for process in started:
        process.join()
    assert {process.exitcode for process in started} == {0}
    assert leftovers(store.root) == []
    lines = log.read_text().splitlines()
    assert lines.count("begin") == 1
    (got,) = {line for line in lines if line.startswith("got")}
    assert lines.count(got) == 8
    assert got.endswith(" True")


def test_a_claim_ends_with_a_failure(store: Store) -> None:
    """Blame the failure inside on no part of the cache."""
    with (
        pytest.raises(FileNotFoundError),
        claims.claim(store, KEY, on_wait=pytest.fail),
    ):
        Path("/nowhere/at/all").read_text()
    assert leftovers(store.root) == []
    assert can_claim(store)


def test_it_may_be_finished_between_look_and_claim(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = claims.try_claim

    def late(root: Path, key: str) -> object:
        add(store, KEY)
        return attempt(root, key)

    monkeypatch.setattr(claims, "try_claim", late)
    with claims.claim(store, KEY, on_wait=pytest.fail) as ours:
        assert not ours


def test_a_claim_is_touched_while_it_is_held(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "BEAT_SECONDS", 0.05)
    path = store.root / "claims" / KEY
    with claims.try_claim(store.root, KEY):
        os.utime(path, (OLD, OLD))
        assert wait_for(lambda: path.stat().st_mtime > OLD)


# ---- gone -----------------------------------------------------------------------------------


def test_a_claim_is_asked_for_every_second(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask every second after an hour, too."""
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        add(store, KEY)

    clock = SimpleNamespace(monotonic=partial(next, itertools.count(step=3600)), sleep=pause)
    monkeypatch.setattr(claims, "time", clock)
    claim_file(store, KEY, ProcessIdentity.here().encoded())
    with claims.claim(store, KEY, on_wait=lambda _: None) as ours:
        assert not ours
    (seconds,) = pauses
    assert 0 < seconds < 1


def test_a_process_that_nobody_has_waited_for_is_gone(store: Store) -> None:
    """Take it for gone: its entry may stay in a container's process table for ever."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started = liveness._started(process.pid)  # noqa: SLF001
        holder = replace(ProcessIdentity.here(), pid=process.pid, started=started or 0)
        claim_file(store, KEY, holder.encoded())
        assert not can_claim(store)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert can_claim(store)


def test_a_process_that_came_later_with_the_same_id_is_another(store: Store) -> None:
    ours = ProcessIdentity.here()
    claim_file(store, KEY, ours.encoded())
    assert not can_claim(store)
    claim_file(store, KEY, replace(ours, started=ours.started - 1).encoded())
    assert can_claim(store)


@pytest.mark.parametrize("elsewhere", [{"host": "b"}, {"boot": "b"}, {"namespace": 1}])
def test_elsewhere_only_silence_counts(
    store: Store, elsewhere: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ignore process ids, which are of another machine."""
    holder = replace(ProcessIdentity.here(), pid=2**22 + 1, **elsewhere)
    path = claim_file(store, KEY, holder.encoded())
    assert not can_claim(store)
    now = liveness.clock(store.root)
    monkeypatch.setattr(liveness, "clock", lambda _root: now)
    os.utime(path, (now - 59, now - 59))
    assert not can_claim(store)
    os.utime(path, (now - 61, now - 61))
    assert can_claim(store)


def test_a_living_neighbour_keeps_its_claim_however_silent(store: Store) -> None:
    """Keep the claim of a process that is stopped, or whose machine was asleep."""
    claim_file(store, KEY, ProcessIdentity.here().encoded(), touched=OLD)
    assert not can_claim(store)


def test_the_clock_is_the_file_systems(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = replace(ProcessIdentity.here(), boot="other")
    claim_file(store, KEY, holder.encoded())
    monkeypatch.setattr(time, "time", lambda: OLD)
    assert not can_claim(store)
    monkeypatch.setattr(time, "time", lambda: 1e12)
    assert not can_claim(store)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"null", b"[" * 100_000, bytes(range(256)), b'{"pid": 1}', b'{"keys": 3}'],
    ids=lambda content: str(content[:8]),
)
def test_a_claim_may_hold_anything(store: Store, content: bytes) -> None:
    """Try the contents that a power cut may leave."""
    path = claim_file(store, KEY, content)
    assert not can_claim(store)
    os.utime(path, (OLD, OLD))
    assert can_claim(store)
    assert leftovers(store.root) == []


def test_a_pipe_in_place_of_a_claim_is_nobodys(store: Store) -> None:
    os.mkfifo(path := claim_file(store, KEY, b"").with_name("pipe"))
    path.rename(claim := path.with_name(KEY))
    assert not can_claim(store)
    os.utime(claim, (OLD, OLD))
    assert can_claim(store)
    assert leftovers(store.root) == []


def test_it_is_said_once_for_whom_we_wait(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for another machine until it is silent."""
    results: list[str] = []
    owner = replace(ProcessIdentity.here(), boot="other")
    path = claim_file(store, KEY, owner.encoded())
    pauses = count_pauses(monkeypatch)
    waiter = threading.Thread(target=lambda: claimed_by_us(store, results), daemon=True)
    waiter.start()
    assert wait_for(lambda: len(pauses) > 2)
    assert results == [f"process {os.getpid()} on {os.uname().nodename}"]
    os.utime(path, (OLD, OLD))
    waiter.join(LIMIT_SECONDS)
    assert results[1:] == ["ours"]


def claimed_by_us(store: Store, messages: list[str]) -> None:
    with claims.claim(store, KEY, on_wait=messages.append) as ours:
        messages.append("ours" if ours else "of another")


# ---- exchanged, lost or refused --------------------------------------------------------------


@pytest.fixture
def late_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exchange the claim right after we looked at it."""
    looks = [liveness.HolderFile(content=b"the stale one", touched=0, holder=None)]
    real = liveness.read_holder
    monkeypatch.setattr(liveness, "read_holder", lambda path: looks.pop() if looks else real(path))


@pytest.mark.usefixtures("late_look")
def test_a_new_claim_is_not_taken_for_the_stale_one(store: Store) -> None:
    path = claim_file(store, KEY, b"the new one")
    claims._take_away(path, b"the stale one")  # noqa: SLF001
    assert path.read_bytes() == b"the new one"
    assert leftovers(store.root) == [KEY]


@pytest.mark.usefixtures("late_look")
def test_an_entry_put_back_replaces_none(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    path = claim_file(store, KEY, b"the second")
    rename = Path.rename

    def late(claim: Path, aside: Path) -> Path:
        rename(claim, aside)
        path.write_bytes(b"the third")
        return aside

    monkeypatch.setattr(Path, "rename", late)
    claims._take_away(path, b"the stale one")  # noqa: SLF001
    monkeypatch.undo()
    assert path.read_bytes() == b"the third"
    assert leftovers(store.root) == [KEY]


def test_a_lost_claim_is_not_removed_from_who_has_it_now(store: Store) -> None:
    path = store.root / "claims" / KEY
    with claims.try_claim(store.root, KEY) as ours:
        assert ours
        path.unlink()
        path.write_bytes(b"the next one's")
    assert path.read_bytes() == b"the next one's"


def test_an_answer_that_was_lost(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept a link that the server made before it lost its answer: the client's second request
    fails.
    """
    link = os.link

    def repeated(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", repeated)
    with claims.try_claim(store.root, KEY) as ours:
        assert ours


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    with (
        pytest.raises(MachineError, match=r"without hard links\n +Choose another"),
        claims.claim(store, KEY, on_wait=pytest.fail),
    ):
        pytest.fail("it is not ours")
    assert leftovers(store.root) == []
