"""Lines about an image's facts for a person."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.cli.commands import inspect
from sifwright.cli.commands.inspect import lines
from sifwright.cli.main import main
from tests.system.docker.toys import FACTS

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND = FACTS.pythons
BASES = {
    "musl": (
        replace(FACTS, libc="musl 1.2.5"),
        "refused: its C library is musl 1.2.5, for which there are no wheels of torch",
    ),
    "no torch": (
        replace(FACTS, pythons=(replace(FIRST, torch=None),)),
        "uses /opt/conda/bin/python 3.12, and installs torch",
    ),
    "torch in the second": (
        replace(FACTS, pythons=(replace(FIRST, torch=None), SECOND)),
        "uses /usr/bin/python3 3.11 and its torch 2.7.1",
    ),
}


@pytest.mark.parametrize("case", BASES)
def test_its_meaning_as_a_base(case: str) -> None:
    facts, expected = BASES[case]
    assert [*lines(facts)][-1].endswith(expected)


def test_a_variable_that_only_a_shell_can_read_is_named() -> None:
    result = [*lines(replace(FACTS, unread_environment=("A",)))]
    assert "env          A: only a shell can read its value" in result


def test_nothing_of_an_image_controls_the_terminal() -> None:
    hostile = replace(FACTS, source="x", os="\x1b[31mred", labels={"a\nb": "c\nimage  fake"})
    result = [*lines(hostile)]
    assert all(line.isprintable() for line in result)
    assert sum(line.startswith("image") for line in result) == 1


def test_labels_are_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = replace(FACTS, labels={"a\nb": "c\x1b[31m\nd"})
    monkeypatch.setattr(inspect, "facts_of", lambda *_, **__: hostile)
    assert main(["inspect", "docker://a", "--labels"]) == 0
    assert capsys.readouterr().out == "a\\nb  c\\x1b[31m\\nd\n"


def archive(path: Path, *tags: str) -> Path:
    """Make an archive of 'docker save' with the parts that are read to find an image by its tag."""
    data = json.dumps([{"Config": "none", "RepoTags": tags, "Layers": []}]).encode()
    member = tarfile.TarInfo("manifest.json")
    member.size = len(data)
    with tarfile.open(path, "w") as file:
        file.addfile(member, io.BytesIO(data))
    return path


def test_nor_does_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = archive(tmp_path / "image.tar", "a\x1b[2J\u202e:1")
    assert main(["inspect", f"docker-archive:{path}:b"]) == 2
    message = capsys.readouterr().err
    assert r"a\x1b[2J\u202e:1" in message
    assert all(line.isprintable() for line in message.splitlines())


def test_the_name_of_a_file_is_not_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = archive(tmp_path / "a[bold].tar[", "a:1")
    assert main(["inspect", f"docker-archive:{path}:b"]) == 2
    assert "a[bold].tar[, " in capsys.readouterr().err
