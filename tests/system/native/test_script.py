"""What `extend-venv-activate` does to the file: once, whole, and back to the last byte."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.system.native.conftest import MODULE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.native.conftest import Place


@pytest.fixture
def place(without_modules: Place) -> Place:
    return without_modules


def test_a_second_time_nothing_changes(place: Place) -> None:
    activate = place.venv("my env")
    activate.chmod(0o640)
    place.extended()
    before, text = activate.stat(), activate.read_bytes()
    assert stat.S_IMODE(before.st_mode) == 0o640
    assert place.extend("my env").stdout == f"extend-venv-activate: nothing to do: {activate}\n"
    after = activate.stat()
    assert (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns)
    assert activate.read_bytes() == text
    assert sorted(path.name for path in activate.parent.glob(".*")) == []


@pytest.mark.parametrize("end", ["", "\n\n", "x"])
def test_undo_gives_every_byte_back(place: Place, end: str) -> None:
    activate = place.venv("my env")
    activate.write_bytes(activate.read_bytes() + end.encode())
    before = activate.read_bytes()
    place.extended()
    assert place.extend("--module", "pytorch/3", "my env").returncode == 0
    assert place.extend("--undo", "my env").returncode == 0
    assert activate.read_bytes() == before
    assert "nothing to do" in place.extend("--undo", "my env").stdout


def test_another_module_takes_the_place_of_the_first(place: Place) -> None:
    activate = place.venv("my env")
    place.extended()
    assert place.extend("--module=pytorch/3", "my env").returncode == 0
    text = activate.read_text()
    assert (text.count("_EXTEND_VENV_MODULE='"), text.count(MODULE)) == (1, 0)


def test_what_was_added_below_stays(place: Place) -> None:
    activate = place.venv("my env")
    before = activate.read_bytes()
    place.extended()
    with activate.open("a") as file:
        file.write("export MINE=1\n")
    place.extended()
    assert place.extend("--undo", "my env").returncode == 0
    assert activate.read_bytes() == before + b"export MINE=1\n"


def test_it_fails_with_the_file_as_it_was(place: Place, tmp_path: Path) -> None:
    activate = place.venv("my env")
    before = activate.read_bytes()
    fake = tmp_path / "fake"
    fake.mkdir()
    (fake / "mv").write_text("#!/bin/sh\nexit 1\n")
    (fake / "mv").chmod(0o755)
    env = {**os.environ, "PATH": f"{fake}:{os.environ['PATH']}"}
    assert run([place.script, "my env"], cwd=place.folder, env=env).returncode == 1
    assert activate.read_bytes() == before
    assert list(activate.parent.glob(".activate.*")) == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "usage: extend-venv-activate [--undo] [--module NAME/VERSION] VENV"),
        (("a", "b"), 2, "usage: "),
        (("--nonsense", "my env"), 2, "usage: "),
        (("--module",), 2, "usage: "),
        (("nosuch",), 1, "there is no file nosuch/bin/activate: make the environment with"),
        (("--module", "a b; true", "my env"), 1, "'a b; true' is no name of a module"),
        (("not one",), 1, "is not what python -m venv, virtualenv or uv venv write"),
    ],
)
def test_refused(place: Place, words: tuple[str, ...], code: int, said: str) -> None:
    place.venv("my env")
    (place.folder / "not one" / "bin").mkdir(parents=True)
    (place.folder / "not one" / "bin" / "activate").write_text("echo\n")
    done = place.extend(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


def test_a_block_that_was_edited_is_left_alone(place: Place) -> None:
    activate = place.venv("my env")
    place.extended()
    text = activate.read_text().replace("# <<< extend-venv-activate <<<\n", "", 1)
    activate.write_text(text)
    done = place.extend("--undo", "my env")
    assert done.returncode == 1
    assert "was edited between the lines" in done.stderr
    assert activate.read_text() == text
