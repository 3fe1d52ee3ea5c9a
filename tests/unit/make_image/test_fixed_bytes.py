"""Packed layers without differences between days (fixed_bytes, bytecode)."""

import importlib.util
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from sifwright.make_image.pack_layers import fixed_bytes
from sifwright.make_image.pack_layers.bytecode import source_of

EPOCH = 1735689600
TIMES = [EPOCH, EPOCH + 1]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: str, text: str, time: int = EPOCH + 12345) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (time, time))
    return file


def times_of(*paths: str) -> list[int]:
    return [Path(path).lstat().st_mtime_ns for path in paths]


def test_new_files_get_the_time_of_their_layer_and_old_ones_keep_theirs() -> None:
    write("usr/new", "")
    write("usr/old", "", EPOCH)
    Path("usr/link").symlink_to("new")
    fixed_bytes.fix(TIMES)
    second = 10**9
    assert times_of("usr/new", "usr/link", "usr", ".") == [(EPOCH + 1) * second] * 4
    assert times_of("usr/old") == [EPOCH * second]


def test_a_part_of_a_second_is_new() -> None:
    os.utime(write("file", ""), ns=(0, EPOCH * 10**9 + 1))
    fixed_bytes.fix(TIMES)
    assert times_of("file") == [(EPOCH + 1) * 10**9]


def imported(name: str) -> str:
    """Return what Python finds in a module: from its bytecode, if that is not out of date."""
    command = f"import sys; sys.path.insert(0, 'lib'); import {name}; print({name}.x)"
    return subprocess.check_output([sys.executable, "-c", command], text=True).strip()


def cached(module: str) -> Path:
    return Path(importlib.util.cache_from_source(module))


@pytest.mark.parametrize("mode", ["TIMESTAMP", "CHECKED_HASH"])
def test_bytecode_stays_valid_and_names_the_time_of_its_layer(mode: str) -> None:
    write("lib/module.py", "x = 1\n")
    how = py_compile.PycInvalidationMode[mode]
    py_compile.compile("lib/module.py", invalidation_mode=how)
    fixed_bytes.fix(TIMES)
    header = cached("lib/module.py").read_bytes()[4:16]
    assert header == bytes(4) + (EPOCH + 1).to_bytes(4, "little") + b"\6\0\0\0"


@pytest.mark.parametrize("mode", ["TIMESTAMP", "CHECKED_HASH"])
def test_bytecode_of_a_source_that_was_changed_since_is_not_imported(mode: str) -> None:
    write("lib/module.py", "x = 1\n")
    how = py_compile.PycInvalidationMode[mode]
    py_compile.compile("lib/module.py", invalidation_mode=how)
    write("lib/module.py", "x = 2\n", EPOCH + 23456)
    fixed_bytes.fix(TIMES)
    assert imported("module") == "2"


def test_a_source_that_a_later_layer_changes_has_no_bytecode_any_more() -> None:
    """Notice the change at an equal size."""
    write("lib/module.py", "x = 1\n")
    py_compile.compile("lib/module.py")
    fixed_bytes.fix(TIMES[:1])
    Path("lib/module.py").write_text("x = 2\n")
    fixed_bytes.fix(TIMES)
    assert imported("module") == "2"


def test_bytecode_in_an_upper_directory_names_the_source_of_an_earlier_layer() -> None:
    source = write("lib/module.py", "x = 1\n", EPOCH)
    py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    before = cached("lib/module.py").read_bytes()
    source.unlink()
    fixed_bytes.fix(TIMES)
    assert cached("lib/module.py").read_bytes() == before


def test_the_source_of_bytecode_may_be_a_link_in_the_image() -> None:
    write("etc/module.py", "x = 1\n")
    Path("lib").mkdir()
    Path("lib/module.py").symlink_to("/etc/module.py")
    py_compile.compile("etc/module.py", str(cached("lib/module.py")))
    fixed_bytes.fix(TIMES)
    assert cached("lib/module.py").read_bytes()[8:12] == (EPOCH + 1).to_bytes(4, "little")


@pytest.mark.parametrize("content", [b"", b"\r\r\r\n", b"#!/bin/sh\necho no bytecode at all\n"])
def test_other_files_of_that_name_keep_their_bytes(content: bytes) -> None:
    Path("other.pyc").write_bytes(content)
    fixed_bytes.fix(TIMES)
    assert Path("other.pyc").read_bytes() == content


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (b"a/__pycache__/b.cpython-311.pyc", b"a/b.py"),
        (b"__pycache__/b.cpython-311.opt-2.pyc", b"b.py"),
        (b"a/__pycache__/b.c.pypy39.pyc", b"a/b.c.py"),
        (b"a/b.pyc", b"a/b.py"),
    ],
)
def test_the_source_of_bytecode(path: bytes, source: bytes) -> None:
    assert source_of(path) == source


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("etc/shadow", "root:*:20100:0:99999:7:::\n", "root:*:20089:0:99999:7:::\n"),
        ("etc/shadow", "a:x:19000:0\nb:!::0\nc", "a:x:19000:0\nb:!::0\nc"),
        ("etc/shadow-", "a:x:20089:0\n", "a:x:20089:0\n"),
        ("etc/machine-id", f"{'0af1' * 8}\n", ""),
        ("etc/machine-id", "uninitialized\n", "uninitialized\n"),
    ],
)
def test_files_that_name_the_day_or_the_machine(path: str, before: str, after: str) -> None:
    write(path, before)
    fixed_bytes.fix(TIMES)
    assert Path(path).read_text() == after


def test_a_link_in_the_place_of_such_a_file_is_not_followed() -> None:
    target = write("elsewhere", f"{'0af1' * 8}\n")
    write("etc/other", "")
    Path("etc/machine-id").symlink_to("../elsewhere")
    fixed_bytes.fix(TIMES)
    assert target.read_text() == f"{'0af1' * 8}\n"
