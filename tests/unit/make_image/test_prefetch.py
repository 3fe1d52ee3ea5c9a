"""Downloads of later steps during earlier ones: once, checked, and used by pip."""

from __future__ import annotations

import os
import re
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.model import Download
from sifwright.host.network import pip_settings
from sifwright.make_image.cache import pruning
from sifwright.make_image.downloads import prefetch, resolve_wheels
from sifwright.make_image.downloads.fetch_file import CONTENT, open_store
from sifwright.plan.model import Plan, StepSource
from tests.conftest import run
from tests.servers import archive, cut, send, sha256
from tests.system.slurm.slurm import command_of, descendants
from tests.unit.stores import leftovers, running, spoil
from tests.unit.wheels import Index, add_wheel, serve_index
from tests.waiting import LIMIT_SECONDS, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from http.server import BaseHTTPRequestHandler

    from sifwright.make_image.downloads.prefetch import Prefetcher

pytestmark = pytest.mark.all

CANARY = "canary4711"
TOY = "toy-1.0-py3-none-any.whl"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """Serve the machine's index, and make an empty cache."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    with serve_index() as server:
        monkeypatch.setattr(pip_settings, "settings", lambda: {"index-url": server.url})
        yield server


@pytest.fixture
def plan(plan: Plan) -> Plan:
    """Return three steps, of which the last installs a package."""
    return replace(plan, facts={"python": "3.11"})


def installs(plan: Plan, requirement: str, number: int = 2, index: str = "") -> Plan:
    """Return the plan whose step with this number installs a package."""
    download = Download(what=requirement, pip=requirement, index=index)
    steps = list(plan.steps)
    layer = replace(steps[number].layer, downloads=(download,))
    steps[number] = replace(steps[number], layer=layer)
    return replace(plan, steps=tuple(steps))


def at_work(plan: Plan, folder: Path, first: int = 1) -> AbstractContextManager[Prefetcher | None]:
    steps = range(first, len(plan.steps))
    return prefetch.fetching(plan, steps, work_dir=folder, log=folder / "log", note=print)


def fetched(plan: Plan, folder: Path, first: int = 1, number: int = 2) -> list[str]:
    """Return the files that the step with this number gets; the log is in `folder`."""
    folder.mkdir(exist_ok=True)
    with at_work(plan, folder, first) as result:
        location = result.folder(number) if result else None
        files = location.rglob("*") if location else ()
        return sorted(path.name for path in files if path.is_file() and path.suffix != ".html")


def entries() -> list[str]:
    """Return the names of the cache's entries."""
    return sorted(str(entry.manifest["name"]) for entry in open_store().entries())


def test_it_is_fetched_once_with_what_it_needs(index: Index, plan: Plan, tmp_path: Path) -> None:
    index.add(
        "toy", "1.0", ("part>=2", 'old; python_version < "3"', 'new; python_version > "3.10"')
    )
    for name, version in (("part", "2.0"), ("part", "2.1"), ("old", "1.0"), ("new", "1.0")):
        index.add(name, version)
    expected = ["new-1.0-py3-none-any.whl", "part-2.1-py3-none-any.whl", TOY]
    assert fetched(installs(plan, "toy==1.0"), tmp_path / "one") == expected
    assert sorted(index.wheels) == expected
    asked = list(index.pages)
    assert fetched(installs(plan, "toy==1.0"), tmp_path / "two") == expected
    # Neither the wheels nor, on one day, what uv was asked.
    assert (sorted(index.wheels), index.pages) == (expected, asked)
    assert entries() == ["lock of toy==1.0", *expected]
    assert leftovers(open_store().root) == []


def test_the_pages_are_for_pip(index: Index, plan: Plan, tmp_path: Path) -> None:
    """Let pip take the wheel from there, check it and install the same tree."""
    index.add("toy", "1.0", ("part",))
    index.add("part")
    plain = _installed(tmp_path / "plain", {})
    assert sorted(index.wheels) == ["part-1.0-py3-none-any.whl", TOY]
    with at_work(installs(plan, "toy==1.0"), tmp_path) as resolved:
        folder = resolved.folder(2) if resolved else None
        assert folder
        before = list(index.wheels)
        extra = {"PIP_EXTRA_INDEX_URL": f"file://{folder}/wheels"}
        assert _installed(tmp_path / "offered", extra) == plain
        assert index.wheels == before
        wheel = folder / "wheels" / "toy" / TOY
        wheel.unlink()
        wheel.write_bytes(b"something else")
        with pytest.raises(AssertionError, match="DO NOT MATCH THE HASHES"):
            _installed(tmp_path / "spoilt", extra)


def _installed(target: Path, extra: dict[str, str]) -> dict[str, bytes]:
    """Return the files that pip installs, except bytecode."""
    words = ["install", "--quiet", "--no-compile", "--no-cache-dir", "--target", str(target)]
    command = [sys.executable, "-m", "pip", *words, "toy==1.0"]
    done = run(command, env={**pip_settings.of_build(), **extra})
    assert done.returncode == 0, done.stderr
    files = (path for path in target.rglob("*") if path.is_file())
    return {str(path.relative_to(target)): path.read_bytes() for path in files}


def test_packages_of_earlier_steps_are_not_fetched(
    index: Index, plan: Plan, tmp_path: Path
) -> None:
    """Skip packages that they install, and compiled ones under the package's name."""
    index.add("toy", "1.0", ("big==1.0", "tool"))
    index.add("big", "1.0", ("bigger",))
    resolved = installs(installs(plan, "big==1.0", number=1), "toy==1.0")
    assert "tool" in plan.steps[1].layer.provides
    assert fetched(resolved, tmp_path, first=2) == [TOY]
    assert index.wheels == [TOY]


def test_cached_steps_ask_for_nothing(index: Index, plan: Plan, tmp_path: Path) -> None:
    index.add("toy")
    assert fetched(installs(plan, "toy==1.0"), tmp_path, first=3) == []
    assert (index.pages, index.wheels) == ([], [])
    assert not (tmp_path / "cache").exists()


def test_the_layers_index_is_asked_next(index: Index, plan: Plan, tmp_path: Path) -> None:
    index.add("part")
    with serve_index() as other:
        other.add("toy", "1.0", ("part", "special"))
        for name in ("special", "part"):
            other.add(name)
        resolved = installs(plan, "toy==1.0", index=other.url)
        expected = ["part-1.0-py3-none-any.whl", "special-1.0-py3-none-any.whl", TOY]
        assert fetched(resolved, tmp_path / "one") == expected
        # A wheel of both indexes comes from the machine's.
        assert index.wheels == expected[:1]
        assert sorted(other.wheels) == expected[1:]
        # Part of it would be taken for the machine's own, and the rest looked for there.
        special = {entry.manifest["name"]: entry for entry in open_store().entries()}[expected[1]]
        spoil(special.file(CONTENT), b"x" * special.bytes)
        other.answers["special-1.0-py3-none-any.whl"] = lambda handler, _: send(handler, 404)
        assert fetched(resolved, tmp_path / "two") == []


def test_of_indexes_with_the_same_file_the_last_is_asked(
    index: Index, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ask the last one, as pip does, so that a near index is used."""
    with serve_index() as near, serve_index() as nearer:
        for server in (index, near, nearer):
            server.add("toy")
        settings = {"index-url": index.url, "extra-index-url": f"{near.url} {nearer.url}"}
        monkeypatch.setattr(pip_settings, "settings", lambda: settings)
        assert fetched(installs(plan, "toy==1.0"), tmp_path) == [TOY]
        assert (index.wheels, near.wheels, nearer.wheels) == ([], [], [TOY])


@pytest.mark.parametrize("name", ["no-index", "index-url"])
def test_a_machine_of_folders_has_nothing_to_fetch(
    index: Index, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "folder"
    add_wheel(folder / "toy")
    settings = {"no-index": {"no-index": "true"}, "index-url": {"index-url": f"file://{folder}"}}
    monkeypatch.setattr(pip_settings, "settings", lambda: settings[name])
    assert fetched(installs(plan, "toy==1.0"), tmp_path) == []
    assert index.pages == []


def test_unresolvable_requirements_are_no_error(index: Index, plan: Plan, tmp_path: Path) -> None:
    index.add("toy", "2.0")
    assert fetched(installs(plan, "toy==1.0"), tmp_path) == []
    assert "/simple/toy/" in index.pages


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda handler, body: cut(handler, body, 100), "IncompleteRead"),
        (lambda handler, body: cut(handler, body, 100, reset=True), "IncompleteRead|reset"),
        (lambda handler, body: send(handler, 200, body[:-1] + b"?"), "its sha256 is"),
        (lambda handler, body: send(handler, 200, body + b"more"), "its sha256 is"),
        (lambda handler, _body: send(handler, 200), "its sha256 is"),
        (lambda handler, _body: send(handler, 404), "HTTP 404"),
        (lambda handler, _body: send(handler, 600), "HTTP 600"),
    ],
)
def test_other_bytes_than_the_file_are_refused(
    index: Index, plan: Plan, tmp_path: Path, answer: object, message: str
) -> None:
    index.add("toy", "1.0", ("part",))
    index.add("part")
    index.answers[TOY] = answer  # type: ignore[assignment]
    assert fetched(installs(plan, "toy==1.0"), tmp_path) == ["part-1.0-py3-none-any.whl"]
    assert re.search(message, (tmp_path / "log").read_text())
    assert entries() == ["lock of toy==1.0", "part-1.0-py3-none-any.whl"]
    assert leftovers(open_store().root) == []
    del index.answers[TOY]
    assert TOY in fetched(installs(plan, "toy==1.0"), tmp_path)


def test_a_login_is_used_and_kept_nowhere(
    index: Index, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add("toy")
    index.login = f"user:{CANARY}"
    url = index.url.replace("//", f"//{index.login}@")
    monkeypatch.setattr(pip_settings, "settings", lambda: {"index-url": url})
    assert fetched(installs(plan, "toy==1.0"), tmp_path) == [TOY]
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == CONTENT for path in kept)
    assert [path for path in kept if CANARY.encode() in path.read_bytes()] == []


def late(go_on: threading.Event) -> Callable[[BaseHTTPRequestHandler, bytes], None]:
    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        if not go_on.wait(LIMIT_SECONDS):
            go_on.set()
        send(handler, 200, body)

    return answer


def test_it_ends_with_the_build(index: Index, plan: Plan, tmp_path: Path) -> None:
    index.add("toy")
    go_on = threading.Event()
    index.answers[TOY] = late(go_on)
    with at_work(installs(plan, "toy==1.0"), tmp_path):
        assert wait_for(lambda: TOY in index.wheels)
    assert not go_on.is_set(), "the end waited for the server"
    go_on.set()


def test_uv_ends_with_the_build(index: Index, plan: Plan, tmp_path: Path) -> None:
    index.files["/simple/toy/"] = b""
    go_on = threading.Event()
    index.answers[""] = late(go_on)
    with at_work(installs(plan, "toy==1.0"), tmp_path):
        assert wait_for(lambda: "/simple/toy/" in index.pages)
        assert _processes(tmp_path)
    assert not go_on.is_set(), "the end waited for the server"
    assert _processes(tmp_path) == []
    go_on.set()


def _processes(folder: Path) -> list[str]:
    """Return commands below this process that name a file of the folder."""
    commands = map(command_of, descendants(os.getpid()))
    return [command for command in commands if str(folder) in command]


def test_it_is_no_error_that_there_is_no_uv(
    index: Index,
    plan: Plan,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    index.add("toy")
    (tmp_path / "uv").touch(mode=0o600)
    monkeypatch.setattr(resolve_wheels, "find_uv_bin", lambda: str(tmp_path / "uv"))
    assert fetched(installs(plan, "toy==1.0"), tmp_path) == []
    message = "wheels cannot be fetched ahead: Permission denied\n"
    assert capsys.readouterr().out == message


def _fetch(plan: Plan, url: str, folder: Path) -> None:
    # The starter of these processes may have had another cache.
    os.environ["SIFWRIGHT_CACHE"] = str(folder.parent / "cache")
    pip_settings.settings = lambda: {"index-url": url}
    fetched(plan, folder)


def test_two_builds_at_once_download_once(index: Index, plan: Plan, tmp_path: Path) -> None:
    index.add("toy")
    go_on = threading.Event()
    index.answers[TOY] = late(go_on)
    resolved = installs(plan, "toy==1.0")
    with (
        running(_fetch, resolved, index.url, tmp_path / "a") as server,
        running(_fetch, resolved, index.url, tmp_path / "b") as other,
    ):
        folders = (tmp_path / "a", tmp_path / "b")
        assert wait_for(lambda: TOY in index.wheels and all(map(Path.exists, folders)))
        go_on.set()
        for process in (server, other):
            process.join()
            assert process.exitcode == 0
    assert index.wheels == [TOY]
    for name in ("a", "b"):
        assert (tmp_path / name / "log").read_text() == f"sifwright: fetched {TOY}\n"


def test_nobody_prunes_what_a_step_will_want(index: Index, plan: Plan, tmp_path: Path) -> None:
    index.add("toy")
    resolved = installs(plan, "toy==1.0")
    with at_work(resolved, tmp_path):
        assert wait_for(lambda: TOY in entries())
        pruning.prune([open_store()], 0)
        assert TOY in entries()
    assert wait_for(lambda: leftovers(open_store().root) == [])
    pruning.prune([open_store()], 0)
    assert entries() == []


@pytest.mark.parametrize("kind", ["archive", "pip"])
def test_sources_with_a_pin(index: Index, plan: Plan, tmp_path: Path, kind: str) -> None:
    body = archive(readme="toy\n")
    page = "/simple/toy/"
    index.files |= {page: b'<a href="toy-1.0.tar.gz">x</a>', f"{page}toy-1.0.tar.gz": body}
    url = "toy" if kind == "pip" else f"{index.url}/toy/toy-1.0.tar.gz"
    pinned = {"kind": kind, "url": url, "ref": "1.0", "version": "1.0"}
    sources = [
        StepSource(name="toy", digest=sha256(body), **pinned),  # type: ignore[arg-type]
        StepSource(name="other", digest="", **pinned),  # type: ignore[arg-type]
    ]
    step = replace(plan.steps[2], sources=tuple(sources))
    result = replace(plan, steps=(*plan.steps[:2], step))
    for name in ("one", "two"):
        assert fetched(result, tmp_path / name) == [sha256(body)]
    assert index.pages.count("toy-1.0.tar.gz") == 1
    assert entries() == ["source toy 1.0"]
