"""What a step leaves for later ones is files of its own, wherever their names would lead."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import PurePath
from typing import TYPE_CHECKING

import pytest

from sifwright import keptfiles
from sifwright.dockerimage.said import Said
from sifwright.errors import BuildError

if TYPE_CHECKING:
    from pathlib import Path


ENVIRONMENT = ".singularity.d/env/90-environment.sh"
LABELS = ".singularity.d/labels.json"


def put(folder: Path, *paths: str, text: str = "left") -> Path:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def lead_out(root: Path, path: str) -> None:
    """Have a link at this path that leads to the same name outside, where all is there."""
    outside = root.parent / "outside"
    target = root / path
    shutil.rmtree(target, ignore_errors=True)
    target.unlink(missing_ok=True)
    target.symlink_to(outside / path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree that a step has left, beside one of the machine with all that it has."""
    for name, text in {"root": "{}", "outside": '{"of": "this machine"}'}.items():
        put(tmp_path / name, ".sifwright/kept/note", ENVIRONMENT, LABELS, text=text)
        (tmp_path / name / "opt" / "sifwright").mkdir(parents=True)
    (tmp_path / "outside" / "opt").chmod(0o700)
    (tmp_path / "outside" / "opt" / "sifwright").chmod(0o700)
    return tmp_path / "root"


def test_a_link_is_not_followed(root: Path) -> None:
    """It would lead to a file of the building machine, and its text into the cache."""
    kept = root / ".sifwright" / "kept"
    (kept / "link").symlink_to(root.parent / "outside" / LABELS)
    (kept / "nowhere").symlink_to("nowhere")
    (kept / "folder").mkdir()
    os.mkfifo(kept / "pipe")
    assert keptfiles.read(root) == {"note": "{}"}


@pytest.mark.parametrize("path", [".sifwright", ".sifwright/kept"])
def test_nor_is_one_in_place_of_the_folder(root: Path, path: str) -> None:
    lead_out(root, path)
    with pytest.raises(BuildError, match=r"^/\.sifwright/kept in the image: lies behind a link"):
        keptfiles.read(root)


def test_a_step_may_leave_nothing(tmp_path: Path) -> None:
    assert keptfiles.read(tmp_path) == {}


@pytest.mark.parametrize("name", [ENVIRONMENT, LABELS])
def test_metadata_behind_a_link_is_refused(root: Path, name: str) -> None:
    """Else it would be in the image, for everybody to read."""
    assert keptfiles.base_metadata(root).labels == {}
    for path in (name, *(str(one) for one in PurePath(name).parents[:-1])):
        lead_out(root, path)
        with pytest.raises(BuildError, match=r"^/\.singularity\.d/.* in the image: "):
            keptfiles.base_metadata(root)


def test_no_metadata_is_none(tmp_path: Path) -> None:
    found = keptfiles.base_metadata(put(tmp_path, LABELS, text="{}"))
    assert (found.labels, found.environment) == ({}, "")


def test_metadata_that_is_no_text_is_refused(root: Path) -> None:
    (root / ENVIRONMENT).write_bytes(b"\xff")
    with pytest.raises(BuildError, match=rf"{ENVIRONMENT} in the image: is no text"):
        keptfiles.base_metadata(root)


def test_a_link_has_no_mode(root: Path) -> None:
    """That of a folder of the machine would be the image's."""
    assert keptfiles.modes(root)["opt/sifwright"] == 0o755
    lead_out(root, "opt")
    assert set(keptfiles.modes(root)) == {"", ".singularity.d", ".singularity.d/env"}


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
