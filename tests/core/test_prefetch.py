"""What later steps install is downloaded while earlier ones run, and not a second time."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from sifwright import pipasking, pipsettings, prefetch
from sifwright.catalog import load
from sifwright.model import Download, Plan
from sifwright.plan import resolve
from tests.core.wheels import add_wheel
from tests.servers import send, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path


class Index:
    """An index of one wheel, which counts what it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.asked.append(handler.path.rpartition("/")[2])
        path = self.folder / handler.path.lstrip("/")
        path = path / "index.html" if path.is_dir() else path
        if path.exists():
            kind = "text/html" if path.suffix == ".html" else "application/octet-stream"
            # As public indexes say of files, whose contents never change.
            lasts = {"Cache_Control": "max-age=365000000"} if path.suffix != ".html" else {}
            send(handler, 200, path.read_bytes(), Content_Type=kind, **lasts)
        else:
            send(handler, 404)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    found = Index(tmp_path / "index")
    add_wheel(found.folder / "toy")
    with serve(found.answer) as url:
        # pip caches what comes from an index that it trusts.
        settings = {"index-url": url, "trusted-host": urlsplit(url).netloc}
        monkeypatch.setattr(pipsettings, "settings", lambda: settings)
        yield found


@pytest.fixture
def plan(project: Path) -> Plan:
    """Two steps, of which the second installs the wheel."""
    found = resolve(load(project / "defs", project), "here", "", [])
    download = Download(what="toy", pip="toy==1.0")
    last = replace(found.steps[-1], layer=replace(found.steps[-1].layer, downloads=(download,)))
    return replace(found, steps=(found.steps[0], last), facts={"python": "3.11"})


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.02)


def test_it_is_there_when_the_step_asks(index: Index, plan: Plan, tmp_path: Path) -> None:
    with prefetch.running(plan, 0, tmp_path / "cache", tmp_path):
        wait_for(tmp_path / "wheels" / "toy-1.0-py3-none-any.whl")
    words = ("download", "--cache-dir", str(tmp_path / "cache"), "--dest", str(tmp_path / "again"))
    command = pipasking.command(plan, words, "", ["toy==1.0"])
    subprocess.run(command, check=True, env=pipasking.environment())
    assert (tmp_path / "again" / "toy-1.0-py3-none-any.whl").exists()
    assert index.asked.count("toy-1.0-py3-none-any.whl") == 1


@pytest.mark.parametrize("first", [1, 2])
def test_what_runs_first_or_is_cached_is_not_fetched(
    index: Index, plan: Plan, tmp_path: Path, first: int
) -> None:
    with prefetch.running(plan, first, tmp_path / "cache", tmp_path):
        assert not (tmp_path / "prefetch.log").exists()
    assert index.asked == []


def test_the_layers_index_is_asked_next(index: Index, plan: Plan, tmp_path: Path) -> None:
    (index.folder / "toy").rename(index.folder / "other")
    last = plan.steps[1]
    url = pipsettings.settings()["index-url"]
    download = Download(what="toy", pip="toy==1.0", index=f"{url}/elsewhere")
    add_wheel(index.folder / "elsewhere" / "toy")
    steps = (plan.steps[0], replace(last, layer=replace(last.layer, downloads=(download,))))
    with prefetch.running(replace(plan, steps=steps), 0, tmp_path / "cache", tmp_path):
        wait_for(tmp_path / "wheels" / "toy-1.0-py3-none-any.whl")


def test_it_ends_with_the_build(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["sleep", "4711.5"]
    monkeypatch.setattr(pipasking, "command", lambda *_: words)
    listing = ["pgrep", "--full", "--exact", " ".join(words)]
    with prefetch.running(plan, 0, tmp_path / "cache", tmp_path):
        deadline = time.monotonic() + 10
        while subprocess.run(listing, check=False, stdout=subprocess.DEVNULL).returncode:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert subprocess.run(listing, check=False, stdout=subprocess.DEVNULL).returncode == 1
