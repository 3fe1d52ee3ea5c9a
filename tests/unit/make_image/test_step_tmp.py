"""The folders of a step at /tmp and /var/tmp; in steps: tests/system/apptainer/test_tmp.py."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.make_image.run_steps import build_folder

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_anybody_may_write_there_whatever_the_umask_is(
    workdir: Path, set_umask: Callable[[int], int]
) -> None:
    set_umask(0o077)
    binds = build_folder.make_step_tmp(workdir)
    sources, targets = zip(*(bind.split(":") for bind in binds), strict=True)
    assert targets == ("/tmp", "/var/tmp")  # of the image
    assert {stat.S_IMODE(Path(source).stat().st_mode) for source in sources} == {0o1777}
    assert len(set(sources)) == len(sources)


def test_in_a_tree_without_them_there_is_nothing_to_bind_to(workdir: Path, tmp_path: Path) -> None:
    """Bind nothing there, or the engine would refuse to start."""
    tree = tmp_path / "tree"
    (tree / "var").mkdir(parents=True)
    (tree / "var" / "tmp").symlink_to("../tmp")
    assert build_folder.make_step_tmp(workdir, tree) == []


def test_links_lead_where_they_lead_in_the_image(workdir: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "data" / "v" / "tmp").mkdir(parents=True)
    (tree / "var").symlink_to("/data/v")
    (tree / "tmp").symlink_to("tmp")
    assert [bind.split(":")[1] for bind in build_folder.make_step_tmp(workdir, tree)] == [
        "/var/tmp"
    ]
    (tree / "tmp").unlink()
    (tree / "tmp").symlink_to("var/../v/./tmp")
    assert len(build_folder.make_step_tmp(workdir / "again", tree)) == 2


def test_nothing_of_them_is_left(workdir: Path) -> None:
    for bind in build_folder.make_step_tmp(workdir):
        Path(bind.split(":")[0], "left").touch()
    build_folder.clear_step_tmp(workdir)
    assert list(workdir.iterdir()) == []
