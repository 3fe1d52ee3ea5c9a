"""A small file of another user: other kinds of files are refused, and no pipe is waited for."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sifwright.system import small_file


def test_a_file_and_its_status(tmp_path: Path) -> None:
    (path := tmp_path / "x").write_text('{"é": [1]}', encoding="utf-8")
    text, status = small_file.read_with_status(path)
    assert (text, status.st_size) == ('{"é": [1]}'.encode(), 11)
    assert small_file.read_text(path, 11) == '{"é": [1]}'
    assert small_file.read_json(path) == {"é": [1]}


@pytest.mark.parametrize(
    "make",
    [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")],
    ids=["pipe", "folder", "device"],
)
def test_other_kinds_of_files(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x")
    with pytest.raises(small_file.NotSmallError) as caught:
        small_file.read_bytes(tmp_path / "x")
    assert (caught.value.strerror, caught.value.filename) == ("not a regular file", f"{tmp_path}/x")


def test_a_file_without_end(tmp_path: Path) -> None:
    (path := tmp_path / "x").touch()
    os.truncate(path, 1 << 40)
    with pytest.raises(OSError, match="larger than 16 MiB"):
        small_file.read_bytes(path)
    with pytest.raises(OSError, match="larger than 9 bytes"):
        small_file.read_bytes(path, 9)


@pytest.mark.parametrize(
    "text", ["[" * 200_000, "[" * 101 + "]" * 101, '{"a":' * 101 + "1" + "}" * 101]
)
def test_json_that_is_nested_too_deeply(text: str) -> None:
    with pytest.raises(ValueError, match="nested deeper than 100 levels"):
        small_file.parse_json(text)


def test_json_that_is_nested_as_deeply_as_it_may_be() -> None:
    assert small_file.parse_json("[" * 100 + "]" * 100)
