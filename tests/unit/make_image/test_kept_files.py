"""Files that a step leaves for later ones: its own, wherever their names would lead."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import PurePath
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.model import LayerFile
from sifwright.errors import BuildError
from sifwright.make_image.docker.docker_build import StepOutput
from sifwright.make_image.pack_layers.pack_files import write_files
from sifwright.make_image.run_steps import build_folder

if TYPE_CHECKING:
    from collections.abc import Callable
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
    """Make a tree that a step has left, beside a tree of the machine with all that it has."""
    for name, text in {"root": "{}", "outside": '{"of": "this machine"}'}.items():
        put(tmp_path / name, ".sifwright/kept/note", ENVIRONMENT, LABELS, text=text)
        (tmp_path / name / "opt" / "sifwright").mkdir(parents=True)
    (tmp_path / "outside" / "opt").chmod(0o700)
    (tmp_path / "outside" / "opt" / "sifwright").chmod(0o700)
    return tmp_path / "root"


def test_a_link_is_not_followed(root: Path) -> None:
    """Follow no link: its file of the building machine would get into the cache."""
    kept = root / ".sifwright" / "kept"
    (kept / "link").symlink_to(root.parent / "outside" / LABELS)
    (kept / "nowhere").symlink_to("nowhere")
    (kept / "folder").mkdir()
    os.mkfifo(kept / "pipe")
    assert build_folder.read(root) == {"note": "{}"}


@pytest.mark.parametrize("path", [".sifwright", ".sifwright/kept"])
def test_nor_is_one_in_place_of_the_folder(root: Path, path: str) -> None:
    lead_out(root, path)
    with pytest.raises(BuildError, match=r"^/\.sifwright/kept in the image: lies behind a link"):
        build_folder.read(root)


def test_a_step_may_leave_nothing(tmp_path: Path) -> None:
    assert build_folder.read(tmp_path) == {}


@pytest.mark.parametrize("name", [ENVIRONMENT, LABELS])
def test_metadata_behind_a_link_is_refused(root: Path, name: str) -> None:
    """Refuse it, or everybody could read it in the image."""
    assert build_folder.base_metadata(root).labels == {}
    for path in (name, *(str(parent) for parent in PurePath(name).parents[:-1])):
        lead_out(root, path)
        with pytest.raises(BuildError, match=r"^/\.singularity\.d/.* in the image: "):
            build_folder.base_metadata(root)


def test_no_metadata_is_none(tmp_path: Path) -> None:
    result = build_folder.base_metadata(put(tmp_path, LABELS, text="{}"))
    assert (result.labels, result.environment) == ({}, "")


def test_metadata_that_is_no_text_is_refused(root: Path) -> None:
    (root / ENVIRONMENT).write_bytes(b"\xff")
    with pytest.raises(BuildError, match=rf"{ENVIRONMENT} in the image: is no text"):
        build_folder.base_metadata(root)


def test_a_link_has_no_mode(root: Path) -> None:
    """Ignore the mode behind a link, which is of a folder of the machine."""
    assert build_folder.modes(root)["opt/sifwright"] == 0o755
    lead_out(root, "opt")
    assert set(build_folder.modes(root)) == {"", ".singularity.d", ".singularity.d/env"}


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
def test_names_that_a_container_prints(words: str, kept: dict[str, str]) -> None:
    """Take a name that is refused for a line of the log."""
    log, lines = io.StringIO(), list[str]()
    step_output = StepOutput(log=log, on_line=lines.append)
    step_output(f"sifwright: kept {words}\nmore\n".encode())
    assert step_output.kept == kept
    assert len(lines) == 1 + (not kept)
    assert log.getvalue().splitlines() == lines


def test_apt_sources_name_the_mirrors_of_this_machine() -> None:
    """Replace right: the address of one archive may be the beginning of the other's."""
    old = {"debian-mirror": "http://a/debian", "debian-security-mirror": "http://a/debian-security"}
    new = {"debian-mirror": "http://b/x", "debian-security-mirror": "http://a/debian/security"}
    kept = {"sources.list": "deb http://a/debian s main\ndeb http://a/debian-security t main\n"}
    result = build_folder.moved(kept, old, new)["sources.list"]
    assert result == "deb http://b/x s main\ndeb http://a/debian/security t main\n"
    assert build_folder.moved(kept, old, {}) == build_folder.moved(kept, {}, new) == kept


def test_folders_of_files_are_readable_whatever_the_umask(
    tmp_path: Path, set_umask: Callable[[int], int]
) -> None:
    """Set the modes, as layers such as run-scripts copy them into the image."""
    set_umask(0o077)
    file = LayerFile(path="/build/layers/a/launch/main.py", data=b"", executable=False)
    write_files(tmp_path / "new", [file], "/build")
    folder = [tmp_path / "new", *(tmp_path / "new").rglob("*")]
    assert [path.stat().st_mode & 0o777 for path in folder] == [0o755] * 4 + [0o644]
