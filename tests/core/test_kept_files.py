"""What a step leaves for later ones is files of its own, wherever their names would lead."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from sifwright import keptfiles
from sifwright.dockerimage.said import Said

if TYPE_CHECKING:
    from pathlib import Path


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """It would lead to a file of the building machine, and its text into the cache."""
    (tmp_path / "private").write_text("of this machine")
    kept = tmp_path / "build" / "kept"
    kept.mkdir(parents=True)
    (kept / "note").write_text("left")
    (kept / "link").symlink_to(tmp_path / "private")
    (kept / "nowhere").symlink_to("nowhere")
    assert keptfiles.read(tmp_path / "build") == {"note": "left"}


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("note bGVmdAo=", {"note": "left\n"}),
        ("apt.conf ", {"apt.conf": ""}),
        ("../note bGVmdAo=", {}),
        ("/etc/note bGVmdAo=", {}),
        (".. bGVmdAo=", {}),
        (f"{'n' * 101} bGVmdAo=", {}),
        ("note bGVmd", {}),
        ("note b=VmdAo", {}),
    ],
)
def test_what_a_container_says_it_leaves(words: str, kept: dict[str, str]) -> None:
    """What is not taken is a line like all others."""
    log, lines = io.StringIO(), list[str]()
    said = Said(log=log, on_line=lines.append)
    said(f"sifwright: kept {words}\nmore\n".encode())
    assert said.kept == kept
    assert len(lines) == 1 + (not kept)
    assert log.getvalue().splitlines() == lines
