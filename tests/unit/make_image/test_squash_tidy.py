"""Names of one file, and whether the others of them are in the layer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sifwright.images.contents import listing
from sifwright.make_image.pack_layers.lower_tree import LowerTree
from sifwright.make_image.pack_layers.normalise_upper import tidy

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

# More than one block, so that numbers change in some blocks only.
MORE = 2 * listing.BLOCK


def _packed(folder: Path, monkeypatch: pytest.MonkeyPatch, *, is_linked: bool) -> dict[str, int]:
    """Return the numbers of the files with several names in the listing of a tree."""
    monkeypatch.chdir(folder)
    summary = tidy(LowerTree(), is_linked=is_linked)
    monkeypatch.undo()
    target = folder.with_name("listing")
    summary.write(target)
    nodes = listing.read(target)
    assert summary.as_json()["entries"] == len(nodes)
    assert summary.as_json()["bytes"] == MORE + 3
    return {node.path.decode(): node.links for node in nodes if node.links}


def _tree(folder: Path) -> Path:
    (folder / "sub").mkdir(parents=True)
    for number in range(MORE):
        (folder / f"m{number:04}").write_text("x")
    for name in ("alone", "shared", "zed"):
        (folder / name).write_text("x")
    (folder / "sub" / "shared").hardlink_to(folder / "shared")
    (folder / "zed-too").hardlink_to(folder / "zed")
    return folder


SHARED = {"shared": 1, "sub/shared": 1, "zed": 2, "zed-too": 2}


def test_names_of_one_file_have_one_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = _tree(tmp_path / "tree")
    (tmp_path / "elsewhere").hardlink_to(tree / "alone")
    assert _packed(tree, monkeypatch, is_linked=False) == SHARED


def test_names_in_the_tree_that_is_packed_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ignore the one name more that each file has there."""
    tree, live = _tree(tmp_path / "tree"), tmp_path / "live"
    live.mkdir()
    for path in tree.rglob("*"):
        if path.is_file():
            (live / path.name.replace("shared", f"{path.parent.name}-shared")).hardlink_to(path)
    assert _packed(tree, monkeypatch, is_linked=True) == SHARED


def test_a_path_that_an_overlay_may_have_got_wrong_is_named_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("below", "upper"):
        (tmp_path / folder / "opt").mkdir(parents=True)
        (tmp_path / folder / "opt" / "é").write_text("x")
    (tmp_path / "below" / "opt" / "too").hardlink_to(tmp_path / "below" / "opt" / "é")
    monkeypatch.chdir(tmp_path / "below")
    tidy(LowerTree()).write(tmp_path / "listing")
    monkeypatch.chdir(tmp_path / "upper")
    assert tidy(LowerTree(tmp_path / "listing")).as_json()["doubts"] == "'opt/é'"


def test_folders_and_links_get_the_time_of_the_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave a link that has the time: a change would show in the next layer."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name, time in (("old", 5), ("new", 7)):
        link = tmp_path / "folder" / name
        link.symlink_to("anywhere")
        os.utime(link, (time, time), follow_symlinks=False)
    changed = link.lstat().st_ctime_ns
    tidy(LowerTree(), time=7)
    paths = (tmp_path, tmp_path / "folder", link, link.with_name("old"))
    assert [path.lstat().st_mtime for path in paths] == [7, 7, 7, 7]
    assert link.lstat().st_ctime_ns == changed
