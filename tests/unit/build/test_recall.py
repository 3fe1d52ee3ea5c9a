"""A build with nothing to do recalls what was decided, and only where it would be decided again."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from sifwright.system import file_digests
from tests.conftest import run
from tests.unit.lint_cases import SITES
from tests.unit.recalled import Bench, add, prepared, same_size_and_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.conftest import Cli

# A build with nothing to do needs none of them.
SLOW = {"yaml", "jinja2", "jsonschema", "rich", "packaging", "subprocess", "tempfile"}


@pytest.fixture
def bench(project: Path, run_cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return prepared(project, run_cli, monkeypatch)


@pytest.mark.parametrize("words", [(), ("--json",), ("--quiet",), ("--verbose",)])
@pytest.mark.parametrize("lint", [(), ("memhooks",)])
def test_it_says_the_same(bench: Bench, words: tuple[str, ...], lint: tuple[str, ...]) -> None:
    for name in lint:
        for change in SITES[name].bad:
            change(bench.project / "defs")
    bench.build(*words)
    said = bench.build(*words).out
    assert bench.is_recalled(*words)
    if words != ("--quiet",):
        assert ("lint: " in said, "up to date: " in said) == (bool(lint), True)
    assert len(bench.built) == 1 + len(lint)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a comment": lambda top: add(top / "defs/sites/here.yaml", "# a comment\n"),
    "a fact": lambda top: add(top / "defs/sites/here.yaml", "partition: other\n"),
    "a letter": lambda top: same_size_and_time(top / "defs/layers/tool/files/data.txt"),
    "who may execute": lambda top: (top / "defs/layers/tool/files/data.txt").chmod(0o755),
    "a new file": lambda top: (top / "defs/layers/tool/files/new").write_text(""),
    "a new folder": lambda top: (top / "defs/layers/tool/patches").mkdir(),
    "one file less": lambda top: (top / "defs/layers/tool/test.sh").unlink(),
    "another name": lambda top: (top / "defs/layers/tool/files/data.txt").rename(
        top / "defs/layers/tool/files/other.txt"
    ),
    "a run script": lambda top: same_size_and_time(top / "runscripts/extra/install.sh"),
    "who may execute a run script": lambda top: (top / "runscripts/extra/layer.yaml").chmod(0o755),
    "a new run script": lambda top: (top / "runscripts/new").write_text(""),
    "one run script less": lambda top: (top / "runscripts/extra/install.sh").unlink(),
    "a run script's name": lambda top: (top / "runscripts/extra").rename(top / "runscripts/other"),
    "no run scripts": lambda top: shutil.rmtree(top / "runscripts"),
    "a folder with such a name": lambda top: (top / "runscripts/line\nbreak").mkdir(),
    "run scripts by a link": lambda top: (
        (top / "runscripts")
        .rename(top / "elsewhere")
        .with_name("runscripts")
        .symlink_to(top / "elsewhere")
    ),
    "a link among the run scripts": lambda top: (top / "runscripts/x").symlink_to("extra"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changed_is_decided_again(bench: Bench, name: str) -> None:
    assert bench.is_recalled()
    bench.build()
    CHANGES[name](bench.project)
    assert not bench.is_recalled()


def test_what_decides_nothing_is_no_change(bench: Bench) -> None:
    folder = bench.project / "runscripts" / "extra"
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_bytes(b"")
    for path in (folder / "install.sh", bench.project / "defs/sites/here.yaml"):
        os.utime(path, ns=(0, 0))
        shutil.copy2(path, f"{path}.copy")
        path.unlink()
        Path(f"{path}.copy").rename(path)
    assert bench.is_recalled()


@pytest.mark.parametrize(
    "words", [("--layout", "layered"), ("--tests", "untested"), ("--set", "tool.count=3")]
)
def test_other_words_are_another_order(bench: Bench, words: tuple[str, ...]) -> None:
    bench.loaded.clear()
    bench.build(*words)
    assert bench.loaded
    assert bench.is_recalled(*words)


def test_force_decides_and_builds(bench: Bench) -> None:
    bench.loaded.clear()
    assert bench.build("--force").out.startswith("built: ")
    assert len(bench.loaded) == 1
    assert len(bench.built) == 2


def test_an_image_that_is_gone_is_built(bench: Bench) -> None:
    """The reason comes first: the plan has not changed."""
    bench.image.unlink()
    assert re.match(r".*; it is made anew\nbuilt: ", bench.build().out)
    with bench.image.open("ab") as sif:
        sif.write(b"more")
    file_digests._digest.cache_clear()  # noqa: SLF001
    assert re.match(r".*; it is made anew\nbuilt: ", bench.build().out)
    assert bench.is_recalled()


def _start_from_a_file(bench: Bench) -> Path:
    base = bench.project / "base.sif"
    header = bench.project / "defs/layers/base/layer.yaml"
    options, _, _ = header.read_text().partition("bootstrap:")
    header.write_text(f"{options}bootstrap:\n  Bootstrap: localimage\n  From: {base}\n")
    return base


def test_a_layered_base_is_refused_each_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what earlier versions built from it, too."""
    _start_from_a_file(bench).write_text("a SIF")
    bench.build()
    empty = SimpleNamespace(descriptors=(), partitions=range(3))
    monkeypatch.setattr("sifwright.images.sif.sif_file.read", lambda _path: empty)
    for _ in range(2):
        bench.loaded.clear()
        result = bench.build()
        assert (result.code, result.out) == (5, "")
        assert "layer 'base' starts from it, and would take the first of its 3" in result.err
        assert bench.loaded == []


def test_a_base_is_looked_at_each_time(bench: Bench) -> None:
    base = _start_from_a_file(bench)
    for text in ("one", "two"):
        base.write_text(text)
        file_digests._digest.cache_clear()  # noqa: SLF001
        assert bench.build().out.startswith("built: ")
        assert bench.is_recalled()
        bench.build()
    base.unlink()
    assert bench.build().out.startswith("built: ")


@pytest.mark.parametrize(
    ("words", "status"), [(("nowhere",), 2), (("--set", "tool.count=x"), 2), (("--set", "x"), 2)]
)
def test_a_mistake_is_found_each_time(bench: Bench, words: tuple[str, ...], status: int) -> None:
    before = bench.memory.read_bytes()
    first, second = bench.build(*words), bench.build(*words)
    assert first == second
    assert (first.code, first.out) == (status, "")
    assert bench.memory.read_bytes() == before


def test_next_to_nothing_is_loaded(bench: Bench) -> None:
    """In a process of its own, as for users."""
    words = ["--project", bench.project, "build", "here", "--output", bench.image.parents[2]]
    command = [sys.executable, "-X", "importtime", "-m", "sifwright", *words]
    # Of that folder Python can import: nothing else may write to it.
    first, second = (run(command, cwd=bench.project) for _ in range(2))
    assert first.stdout == second.stdout
    assert second.stdout.startswith("up to date: ")
    loaded = [
        set(re.findall(r"\| +([\w.]+)$", done.stderr, re.MULTILINE)) for done in (first, second)
    ]
    assert {"yaml", "jinja2"} <= loaded[0]
    assert "sifwright.build.up_to_date" in loaded[1]
    assert not SLOW & loaded[1]
