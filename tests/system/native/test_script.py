"""Changes of `extend-venv-activate` to the file: once, whole, and undone to the last byte."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.system.native.conftest import MODULE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.native.conftest import NativeSite


@pytest.fixture
def native_site(without_modules: NativeSite) -> NativeSite:
    return without_modules


def test_a_second_time_nothing_changes(native_site: NativeSite) -> None:
    activate = native_site.venv("my env")
    activate.chmod(0o640)
    native_site.extended()
    before, text = activate.stat(), activate.read_bytes()
    assert stat.S_IMODE(before.st_mode) == 0o640
    assert (
        native_site.extend("my env").stdout == f"extend-venv-activate: nothing to do: {activate}\n"
    )
    after = activate.stat()
    assert (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns)
    assert activate.read_bytes() == text
    assert sorted(path.name for path in activate.parent.glob(".*")) == []


@pytest.mark.parametrize("end", ["", "\n\n", "x"])
def test_undo_gives_every_byte_back(native_site: NativeSite, end: str) -> None:
    activate = native_site.venv("my env")
    activate.write_bytes(activate.read_bytes() + end.encode())
    before = activate.read_bytes()
    native_site.extended()
    assert native_site.extend("--module", "pytorch/3", "my env").returncode == 0
    assert native_site.extend("--undo", "my env").returncode == 0
    assert activate.read_bytes() == before
    assert "nothing to do" in native_site.extend("--undo", "my env").stdout


def test_another_module_takes_the_place_of_the_first(native_site: NativeSite) -> None:
    activate = native_site.venv("my env")
    native_site.extended()
    assert native_site.extend("--module=pytorch/3", "my env").returncode == 0
    text = activate.read_text()
    assert (text.count("_EXTEND_VENV_MODULE='"), text.count(MODULE)) == (1, 0)


def test_lines_added_below_stay(native_site: NativeSite) -> None:
    activate = native_site.venv("my env")
    before = activate.read_bytes()
    native_site.extended()
    with activate.open("a") as file:
        file.write("export MINE=1\n")
    native_site.extended()
    assert native_site.extend("--undo", "my env").returncode == 0
    assert activate.read_bytes() == before + b"export MINE=1\n"


def test_it_fails_with_the_file_as_it_was(native_site: NativeSite, tmp_path: Path) -> None:
    activate = native_site.venv("my env")
    before = activate.read_bytes()
    fake = tmp_path / "fake"
    fake.mkdir()
    (fake / "mv").write_text("#!/bin/sh\nexit 1\n")
    (fake / "mv").chmod(0o755)
    env = {**os.environ, "PATH": f"{fake}:{os.environ['PATH']}"}
    assert run([native_site.script, "my env"], cwd=native_site.folder, env=env).returncode == 1
    assert activate.read_bytes() == before
    assert list(activate.parent.glob(".activate.*")) == []


@pytest.mark.parametrize(
    ("words", "code", "message"),
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
def test_refused(native_site: NativeSite, words: tuple[str, ...], code: int, message: str) -> None:
    native_site.venv("my env")
    (native_site.folder / "not one" / "bin").mkdir(parents=True)
    (native_site.folder / "not one" / "bin" / "activate").write_text("echo\n")
    done = native_site.extend(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


def test_a_block_that_was_edited_is_left_alone(native_site: NativeSite) -> None:
    activate = native_site.venv("my env")
    native_site.extended()
    text = activate.read_text().replace("# <<< extend-venv-activate <<<\n", "", 1)
    activate.write_text(text)
    done = native_site.extend("--undo", "my env")
    assert done.returncode == 1
    assert "was edited between the lines" in done.stderr
    assert activate.read_text() == text
