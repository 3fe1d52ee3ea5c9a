"""Changes in a tree that steps still use: all are found, and the tree stays as it was."""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from sifwright.images.contents import listing
from sifwright.make_image.pack_layers.changes import collected
from sifwright.make_image.pack_layers.lower_tree import LowerTree
from sifwright.make_image.pack_layers.normalise_upper import tidy
from sifwright.make_image.pack_layers.tree_state import NewState

if TYPE_CHECKING:
    from pathlib import Path

OLD = 10**18
GIVES_AWAY = pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")


@dataclass
class WorkedTree:
    """A tree below a folder, and the listings of what was found in it so far."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    count: int = 0

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    def put(self, *paths: str) -> None:
        """Write files with their paths as text, and the folders that they are in."""
        for path in paths:
            (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / path).write_text(path)

    def link(self, new: str, old: str) -> None:
        """Give an old file a new name."""
        (self.tree / new).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / new).hardlink_to(self.tree / old)

    def changes(self, *exclude: bytes) -> dict[str, listing.ListedPath]:
        """Return the changes since the last time; the paths in `moved` were packed from where they
        are.
        """
        upper = self.folder / f"upper-{self.count}"
        upper.mkdir()
        self.monkeypatch.chdir(upper)
        lower = LowerTree(*(self._listing(number) for number in range(self.count)))
        before = self.list_states()
        with collected(self.tree, self.folder / "state", lower, exclude) as moved:
            self.moved = {os.fsdecode(path) for path in moved}
            summary = tidy(lower, exclude, is_linked=True, moved=moved)
            summary.write(self._listing(self.count))
        self.count += 1
        assert not list(upper.iterdir())
        assert self.list_states() == before
        nodes = listing.read(self._listing(self.count - 1))
        return {node.path.decode(): node for node in nodes if node.path}

    def list_states(self) -> dict[str, tuple[int, ...]]:
        """Return the tree: of each path the facts that a program with the right can see."""
        paths = [self.tree, *self.tree.rglob("*")]
        return {str(path.relative_to(self.tree)): _state(path.lstat()) for path in paths}

    def _listing(self, number: int) -> Path:
        return self.folder / f"listing-{number}"


def _state(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_mode, status.st_ino, status.st_nlink, status.st_size, status.st_mtime_ns)


@pytest.fixture
def worked_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkedTree:
    """Make a tree with a folder and two files, as the first step."""
    result = WorkedTree(folder=tmp_path, monkeypatch=monkeypatch)
    result.put("usr/bin/old", "usr/lib/old")
    _age(result.tree)
    assert set(result.changes()) == {"usr", "usr/bin", "usr/lib", "usr/bin/old", "usr/lib/old"}
    assert result.moved == {"usr"}
    return result


def _age(tree: Path) -> None:
    """Set times that only a mistake would bring back."""
    for path in (tree, *tree.rglob("*")):
        os.utime(path, ns=(OLD, OLD))


def test_nothing_changed(worked_tree: WorkedTree) -> None:
    assert worked_tree.changes() == {}


def test_a_new_folder_in_one_that_was_there(worked_tree: WorkedTree) -> None:
    """Keep the time that the step gave to the parent folder."""
    worked_tree.put("usr/lib/new/deep/file")
    _age(worked_tree.tree / "usr")
    changes = worked_tree.changes()
    assert set(changes) == {
        *("usr", "usr/bin", "usr/lib"),  # a new time alone, which tidy leaves out of what is empty
        *("usr/bin/old", "usr/lib/old", "usr/lib/new"),
        *("usr/lib/new/deep", "usr/lib/new/deep/file"),
    }
    assert worked_tree.moved == {"usr/lib/new"}
    assert changes["usr/lib"].mtime == OLD // 10**9
    assert worked_tree.changes() == {}


def test_later_changes_in_a_moved_folder(worked_tree: WorkedTree) -> None:
    worked_tree.put("new/one", "new/two")
    assert set(worked_tree.changes()) == {"new", "new/one", "new/two"}
    (worked_tree.tree / "new" / "two").write_text("other")
    assert set(worked_tree.changes()) == {"new", "new/two"}
    assert worked_tree.moved == set()


@pytest.mark.parametrize("name", ["new/a", "usr/lib/a"])
def test_names_of_one_file_here_and_there(worked_tree: WorkedTree, name: str) -> None:
    """Link two moved folders, and a moved one with an old one."""
    worked_tree.put(name, "new/alone", "usr/lib/alone")
    worked_tree.link("other/b", name)
    changes = worked_tree.changes()
    assert worked_tree.moved == {"new", "other"}
    assert {path for path, node in changes.items() if node.links} == {name, "other/b"}
    assert changes[name].links == changes["other/b"].links
    assert worked_tree.changes() == {}


def test_a_new_name_of_an_old_file_in_a_new_folder(worked_tree: WorkedTree) -> None:
    """Pack both names as names of one file: one name more changes the file."""
    worked_tree.link("new/name", "usr/bin/old")
    changes = worked_tree.changes()
    assert set(changes) == {"new", "new/name", "usr", "usr/bin", "usr/bin/old"}
    assert changes["new/name"].links == changes["usr/bin/old"].links != 0
    assert worked_tree.changes() == {}


@GIVES_AWAY
def test_a_folder_that_was_renamed(worked_tree: WorkedTree) -> None:
    (worked_tree.tree / "usr" / "lib").rename(worked_tree.tree / "lib")
    changes = worked_tree.changes()
    assert worked_tree.moved == {"lib"}
    assert changes["usr/lib"].is_whiteout
    assert changes["lib/old"].kind == "file"


@GIVES_AWAY
def test_a_renamed_folder_with_a_name_of_a_file_elsewhere(worked_tree: WorkedTree) -> None:
    """Pack all names of an unchanged file together, or they would be two files."""
    worked_tree.link("deep/er/other", "usr/bin/old")
    _age(worked_tree.tree)
    worked_tree.changes()
    (worked_tree.tree / "usr" / "bin").rename(worked_tree.tree / "bin")
    changes = worked_tree.changes()
    others = {"deep", "deep/er", "deep/er/other", "bin", "bin/old", "usr"}
    assert set(changes) - {"usr/bin"} == others
    assert changes["deep/er/other"].links == changes["bin/old"].links != 0
    assert changes["deep/er"].mtime == OLD // 10**9
    assert worked_tree.changes() == {}


def test_a_folder_in_place_of_a_file(worked_tree: WorkedTree) -> None:
    """Compare its content, as the layers below have the path."""
    (worked_tree.tree / "usr" / "bin" / "old").unlink()
    worked_tree.put("usr/bin/old/file")
    assert {"usr/bin/old", "usr/bin/old/file"} < set(worked_tree.changes())


def test_excluded_paths_of_a_new_folder(worked_tree: WorkedTree) -> None:
    worked_tree.put("new/own/file", "new/file")
    assert set(worked_tree.changes(b"new/own")) == {"new", "new/file"}


def test_a_reserved_name_in_a_new_folder_is_refused(worked_tree: WorkedTree) -> None:
    worked_tree.put("new/.wh.name")
    with pytest.raises(Exception, match="a removed file to overlay drivers"):
        worked_tree.changes()


def test_a_clock_that_was_set_back(tmp_path: Path) -> None:
    """Wait until the clock goes on, not until it is as late as the files."""
    tree, state = tmp_path / "tree", tmp_path / "state"
    tree.mkdir()
    line = b'["file",7,%d]\n' % (time.time_ns() + 3600 * 10**9)
    root = os.open(tree, os.O_RDONLY)
    with closing(NewState(state)) as now:
        now.add(line)
        now.write(root)
    os.close(root)
    assert state.read_bytes() == line
