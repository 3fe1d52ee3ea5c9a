"""Memory for packing a layer: it hardly grows with the files that the layers have."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from sifwright.images.contents import listing
from tests.conftest import run

if TYPE_CHECKING:
    from pathlib import Path

# getrusage(2) would count what the process was before it became Python.
PEAK = """
import sys
from pathlib import Path
from sifwright.make_image.pack_layers import in_namespace
code = in_namespace.main(Path(sys.argv[1]))
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
sys.exit(code)
"""
FILES = 20_000
# Bytes for each file. A node takes 600 and its row 700; a name takes 50. Only the names of one
# folder may be in memory, and these trees have many folders. The number of a file that has names
# elsewhere takes 140. The allocator may take 1 MB more or less, which is 50.
PACKED, LINKED, ABOVE = 50, 250, 50
DEEP = "/".join(["d"] * 2000)


def _peak(folder: Path, **request: object) -> int:
    """Have it done without mksquashfs, which is a program of its own; the bytes that it held."""
    (folder / "upper").mkdir(exist_ok=True)
    file = folder / "request.json"
    words = {"tree": str(folder / "upper"), "listing": str(folder / "listing")}
    file.write_text(json.dumps({**words, **request}))
    done = run([sys.executable, "-c", PEAK, file])
    assert done.returncode == 0, done.stdout + done.stderr
    return int(done.stdout.splitlines()[-1]) * 1024


def _tree(folder: Path, files: int) -> Path:
    for number in range(files):
        if number % 50 == 0:
            inside = folder / f"{number // 1000:04}" / f"{number // 50:06}"
            inside.mkdir(parents=True)
        (inside / f"a-file-of-many-{number}").touch()
    return folder


def _live(folder: Path, files: int) -> dict[str, object]:
    tree = _tree(folder / "tree", files)
    return {"live": str(tree), "state": str(folder / "state")}


def _growth(few: int, many: int) -> float:
    return (many - few) / FILES


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    targets = [tmp_path / "few", tmp_path / "many"]
    for folder in targets:
        folder.mkdir()
    return targets


@pytest.mark.all
def test_packing_a_live_tree_and_an_edit_of_it(folders: list[Path]) -> None:
    first, edit, above = [], [], []
    for folder, files in zip(folders, (FILES, 2 * FILES), strict=True):
        live = _live(folder, files)
        first.append(_peak(folder, **live))
        assert len(listing.read(folder / "listing")) > files
        (folder / "listing").rename(folder / "lower")
        lower = [str(folder / "lower")]
        (folder / "tree" / "new").touch()
        edit.append(_peak(folder, lower=lower, **live))
        assert [node.path for node in listing.read(folder / "listing")] == [b"", b"new"]
        (folder / "upper" / "other").touch()
        above.append(_peak(folder, lower=lower))
        assert [node.path for node in listing.read(folder / "listing")] == [b"", b"other"]
    assert _growth(*first) < PACKED
    assert _growth(*edit) < ABOVE
    assert _growth(*above) < ABOVE


@pytest.mark.all
def test_packing_files_that_have_other_names_elsewhere(folders: list[Path]) -> None:
    """Keep their numbers until all are seen."""
    peaks = []
    for folder, files in zip(folders, (FILES, 2 * FILES), strict=True):
        tree = _tree(folder / "tree", files)
        assert run(["cp", "-al", tree, folder / "upper"]).returncode == 0
        peaks.append(_peak(folder))
        assert not any(node.links for node in listing.read(folder / "listing"))
    assert _growth(*peaks) < LINKED


@pytest.mark.all
def test_a_path_as_long_as_any(tmp_path: Path) -> None:
    """Go deeper than 1000 calls, where Python by itself stops."""
    live = _live(tmp_path, 0)
    (tmp_path / "tree").mkdir()
    assert run(["mkdir", "-p", DEEP], cwd=tmp_path / "tree").returncode == 0
    _peak(tmp_path, **live)
    assert listing.read(tmp_path / "listing")[-1].path == os.fsencode(DEEP)
    (tmp_path / "listing").rename(tmp_path / "lower")
    assert run(["touch", f"{DEEP}/x"], cwd=tmp_path / "tree").returncode == 0
    _peak(tmp_path, lower=[str(tmp_path / "lower")], **live)
    assert len(listing.read(tmp_path / "listing")) == 2002
    # pytest's own way to remove it is as deep.
    assert run(["rm", "-rf", tmp_path / "tree"]).returncode == 0
