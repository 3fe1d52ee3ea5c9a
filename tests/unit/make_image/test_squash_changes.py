"""What changed in a tree that goes on being worked in is found, and the tree stays as it was."""

from __future__ import annotations

import os
import time
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
class Work:
    """A tree below a folder, and the listings of what was found in it so far."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    count: int = 0

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    def changes(self, *exclude: bytes) -> dict[str, listing.ListedPath]:
        """What changed since the last time; `moved` in it were packed from where they are."""
        upper = self.folder / f"upper-{self.count}"
        upper.mkdir()
        self.monkeypatch.chdir(upper)
        lower = LowerTree(*(self._listing(number) for number in range(self.count)))
        before = self.seen()
        with collected(self.tree, self.folder / "state", lower, exclude) as moved:
            self.moved = {os.fsdecode(path) for path in moved}
            found = tidy(lower, exclude, is_linked=True, moved=moved)
            found.write(self._listing(self.count))
        self.count += 1
        assert not list(upper.iterdir())
        assert self.seen() == before
        nodes = listing.read(self._listing(self.count - 1))
        return {node.path.decode(): node for node in nodes if node.path}

    def seen(self) -> dict[str, tuple[int, ...]]:
        """The tree: of each path what a program can see that has the right to."""
        paths = [self.tree, *self.tree.rglob("*")]
        return {str(path.relative_to(self.tree)): _state(path.lstat()) for path in paths}

    def _listing(self, number: int) -> Path:
        return self.folder / f"listing-{number}"


def _state(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_mode, status.st_ino, status.st_nlink, status.st_size, status.st_mtime_ns)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    """A tree with a folder and two files, which the first step made."""
    found = Work(folder=tmp_path, monkeypatch=monkeypatch)
    for name in ("usr/bin/old", "usr/lib/old"):
        (found.tree / name).parent.mkdir(parents=True, exist_ok=True)
        (found.tree / name).write_text(name)
    _age(found.tree)
    assert set(found.changes()) == {"usr", "usr/bin", "usr/lib", "usr/bin/old", "usr/lib/old"}
    assert found.moved == {"usr"}
    return found


def _age(tree: Path) -> None:
    """Times that only a mistake would bring back."""
    for path in (tree, *tree.rglob("*")):
        os.utime(path, ns=(OLD, OLD))


def test_nothing_changed(work: Work) -> None:
    assert work.changes() == {}


def test_a_new_folder_in_one_that_was_there(work: Work) -> None:
    """The folder it is in has the time that the step gave it."""
    (work.tree / "usr" / "lib" / "new" / "deep").mkdir(parents=True)
    (work.tree / "usr" / "lib" / "new" / "deep" / "file").write_text("new")
    _age(work.tree / "usr")
    found = work.changes()
    assert set(found) == {
        *("usr", "usr/bin", "usr/lib"),  # a new time alone, which tidy leaves out of what is empty
        *("usr/bin/old", "usr/lib/old", "usr/lib/new"),
        *("usr/lib/new/deep", "usr/lib/new/deep/file"),
    }
    assert work.moved == {"usr/lib/new"}
    assert found["usr/lib"].mtime == OLD // 10**9
    assert work.changes() == {}


def test_what_changes_later_in_a_folder_that_was_moved(work: Work) -> None:
    (work.tree / "new").mkdir()
    for name in ("one", "two"):
        (work.tree / "new" / name).write_text(name)
    assert set(work.changes()) == {"new", "new/one", "new/two"}
    (work.tree / "new" / "two").write_text("other")
    assert set(work.changes()) == {"new", "new/two"}
    assert work.moved == set()


@pytest.mark.parametrize("name", ["new/a", "usr/lib/a"])
def test_names_of_one_file_here_and_there(work: Work, name: str) -> None:
    """In two folders that are moved, and in one of them and one that was there."""
    for folder in ("new", "other"):
        (work.tree / folder).mkdir()
    file = work.tree / name
    file.write_text("x")
    (work.tree / "other" / "b").hardlink_to(file)
    (work.tree / "new" / "alone").write_text("x")
    (work.tree / "usr" / "lib" / "alone").write_text("x")
    found = work.changes()
    assert work.moved == {"new", "other"}
    assert {path for path, node in found.items() if node.links} == {name, "other/b"}
    assert found[name].links == found["other/b"].links
    assert work.changes() == {}


def test_a_new_name_of_an_old_file_in_a_new_folder(work: Work) -> None:
    """A name more changes the file, so both are packed, as names of one file."""
    (work.tree / "new").mkdir()
    (work.tree / "new" / "name").hardlink_to(work.tree / "usr" / "bin" / "old")
    found = work.changes()
    assert set(found) == {"new", "new/name", "usr", "usr/bin", "usr/bin/old"}
    assert found["new/name"].links == found["usr/bin/old"].links != 0
    assert work.changes() == {}


@GIVES_AWAY
def test_a_folder_that_was_renamed(work: Work) -> None:
    (work.tree / "usr" / "lib").rename(work.tree / "lib")
    found = work.changes()
    assert work.moved == {"lib"}
    assert found["usr/lib"].is_whiteout
    assert found["lib/old"].kind == "file"


@GIVES_AWAY
def test_a_renamed_folder_with_a_name_of_a_file_elsewhere(work: Work) -> None:
    """Neither file changed, but names of one file are packed together, or they would be two."""
    (work.tree / "deep" / "er").mkdir(parents=True)
    (work.tree / "deep" / "er" / "other").hardlink_to(work.tree / "usr" / "bin" / "old")
    _age(work.tree)
    work.changes()
    (work.tree / "usr" / "bin").rename(work.tree / "bin")
    found = work.changes()
    assert {"deep", "deep/er", "deep/er/other", "bin", "bin/old", "usr"} == set(found) - {"usr/bin"}
    assert found["deep/er/other"].links == found["bin/old"].links != 0
    assert found["deep/er"].mtime == OLD // 10**9
    assert work.changes() == {}


def test_a_folder_in_place_of_a_file(work: Work) -> None:
    """The layers below have the path, so its content is compared, not taken as it is."""
    (work.tree / "usr" / "bin" / "old").unlink()
    (work.tree / "usr" / "bin" / "old").mkdir()
    (work.tree / "usr" / "bin" / "old" / "file").write_text("new")
    assert {"usr/bin/old", "usr/bin/old/file"} < set(work.changes())


def test_what_stays_out_of_a_new_folder(work: Work) -> None:
    (work.tree / "new" / "own").mkdir(parents=True)
    (work.tree / "new" / "own" / "file").write_text("ours")
    (work.tree / "new" / "file").write_text("theirs")
    assert set(work.changes(b"new/own")) == {"new", "new/file"}


def test_a_reserved_name_in_a_new_folder_is_refused(work: Work) -> None:
    (work.tree / "new").mkdir()
    (work.tree / "new" / ".wh.name").touch()
    with pytest.raises(Exception, match="a removed file to overlay drivers"):
        work.changes()


def test_a_clock_that_was_set_back(tmp_path: Path) -> None:
    """It is waited for as long as it takes to go on, not until it is as late as the files."""
    tree, state = tmp_path / "tree", tmp_path / "state"
    tree.mkdir()
    line = b'["file",7,%d]\n' % (time.time_ns() + 3600 * 10**9)
    root = os.open(tree, os.O_RDONLY)
    with NewState(state) as now:
        now.add(line)
        now.write(root)
    os.close(root)
    assert state.read_bytes() == line
