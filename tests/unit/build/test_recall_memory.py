"""What builds remember of their decisions: nothing doubtful, nothing secret, nothing of others."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.build import up_to_date
from sifwright.catalog import load as catalog
from sifwright.system import cache_folder, fact_cache
from tests.unit.lint_cases import SITES
from tests.unit.recalled import Bench, add, prepared, same_size_and_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sifwright.catalog.model import Catalog
    from tests.unit.conftest import Cli

VALUE = "s3cr3t-t0k3n"


@pytest.fixture
def bench(project: Path, run_cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return prepared(project, run_cli, monkeypatch)


def _link(folder: Path) -> None:
    (folder / "link").symlink_to("/etc/passwd")


def _socket(folder: Path) -> None:
    # Its whole path would be too long.
    before = Path.cwd()
    os.chdir(folder)
    with socket.socket(socket.AF_UNIX) as end:
        end.bind("socket")
    os.chdir(before)


def _large(folder: Path) -> None:
    with (folder / "large").open("wb") as file:
        file.truncate((4 << 20) + 1)


@pytest.mark.parametrize(
    "spoil", [_link, _socket, _large, lambda folder: os.mkfifo(folder / "pipe")]
)
def test_nothing_is_remembered_of_what_a_digest_cannot_tell(
    bench: Bench, spoil: Callable[[Path], None]
) -> None:
    bench.memory.unlink()
    spoil(bench.project / "defs" / "layers")
    assert bench.build().out.startswith("up to date: ")
    assert not bench.memory.exists()


@pytest.mark.parametrize("is_put_back", [True, False])
@pytest.mark.parametrize("name", ["defs/layers/tool/files/data.txt", "runscripts/extra/install.sh"])
def test_a_change_while_it_is_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str, *, is_put_back: bool
) -> None:
    """What was read is not what stands there afterwards, or stood there before."""
    bench.memory.unlink()
    path = bench.project / name
    before, counting = path.read_text(), catalog.load_catalog

    def load(defs: Path, project: Path) -> Catalog:
        if is_put_back:
            path.write_text(f"{before}# more\n")
        found = counting(defs, project)
        path.write_text(before if is_put_back else f"{before}# more\n")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(catalog, "load_catalog", load)
        bench.build()
    bench.loaded.clear()
    bench.build()
    assert bench.loaded


def _flip(text: str) -> str:
    """A letter of a name."""
    return "smell".join(text.rsplit("small", 1))


def _swapped(text: str) -> str:
    """What was decided for other words."""
    known = json.loads(text)
    (one, first), (other, second) = list(known.items())[-2:]
    return json.dumps({one: second, other: first})


def _resealed(data: Mapping[str, object]) -> Callable[[str], str]:
    def change(text: str) -> str:
        (key,) = list(json.loads(text))[-1:]
        new = json.dumps(data)
        return json.dumps({key: [new, up_to_date._seal(key, new)]})  # noqa: SLF001

    return change


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: "",
        lambda _: "[]",
        lambda text: text[:-10],
        lambda text: re.sub(r"\[(\".*?\"), (\".*?\")\]", r"[\1]", text),
        lambda text: json.dumps(dict.fromkeys(json.loads(text), 1)),
        lambda text: json.dumps({key: [{}, {}] for key in json.loads(text)}),
        _flip,
        _swapped,
        _resealed({}),
        _resealed({"order": {}, "included": []}),
        _resealed({"order": [], "included": 1}),
        _resealed({"order": {"site": "here"}, "included": [["nowhere", ""]]}),
    ],
)
def test_a_damaged_memory_is_none(bench: Bench, damage: Callable[[str], str]) -> None:
    bench.memory.unlink()
    bench.build("--tests", "untested")
    bench.build()
    bench.memory.write_text(damage(bench.memory.read_text()))
    bench.loaded.clear()
    said = bench.build().out
    assert bench.loaded
    assert said.startswith("up to date: ")
    assert bench.is_recalled()


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")
def test_what_somebody_else_wrote_is_not_believed(bench: Bench) -> None:
    os.chown(bench.memory, 65534, 65534)
    assert not bench.is_recalled()


def test_no_cache_is_made_for_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(bench.project / "none"))
    for _ in range(2):
        assert not bench.is_recalled()
    assert not (bench.project / "none").exists()


def test_only_so_many_are_remembered(bench: Bench) -> None:
    fact_cache.write("orders.json", {f"{number}": 1 for number in range(200)})
    bench.build()
    known = list(json.loads(bench.memory.read_text()))
    assert known[:-1] == [f"{number}" for number in range(101, 200)]


def _another_file(_package: Path, site: Path) -> None:
    (site / "installed").mkdir()
    os.utime(site, ns=(1, 1))


@pytest.mark.parametrize(
    "change",
    [
        lambda package, _: (package / "new.py").touch(),
        lambda package, _: add(package / "sub" / "module.py", "x"),
        lambda package, _: same_size_and_time(package / "sub" / "module.py"),
        lambda package, _: (package / "sub" / "module.py").unlink(),
        _another_file,
    ],
)
def test_another_program_decides_itself(
    bench: Bench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, Path], None],
) -> None:
    package, site = tmp_path / "package", tmp_path / "site"
    (package / "sub").mkdir(parents=True)
    site.mkdir()
    (package / "sub" / "module.py").write_text("a = 1")
    monkeypatch.setattr(up_to_date, "_PACKAGE", str(package))
    monkeypatch.setattr(sys, "path", [*sys.path, str(site), str(tmp_path / "nowhere")])
    bench.build()
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "module.pyc").touch()
    assert bench.is_recalled()
    bench.build()
    change(package, site)
    assert not bench.is_recalled()


def test_another_version_decides_itself(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up_to_date, "__version__", "0.0.0")
    assert not bench.is_recalled()


@pytest.mark.parametrize("lint", [False, True])
def test_settings_are_nowhere_in_the_cache(bench: Bench, *, lint: bool) -> None:
    if lint:
        for change in SITES["memhooks"].bad:
            change(bench.project / "defs")
    words = ("--set", f"base.mirror=http://user:{VALUE}@mirror.example/debian")
    assert "\nbuilt: " in f"\n{bench.build(*words).out}"
    bench.loaded.clear()
    assert bench.build(*words).out.startswith("lint: " if lint else "up to date: ")
    # A note may show a value: it is not remembered with settings.
    assert bool(bench.loaded) == lint
    files = [path for path in cache_folder.root().rglob("*") if path.is_file()]
    assert bench.memory in files
    assert not [path for path in files if VALUE.encode() in path.read_bytes()]
