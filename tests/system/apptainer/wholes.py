"""The whole tree of a SIF, with all that a squashfs knows of it, so that two can be compared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sifwright.make_image.pack_layers.merge_layers import merge
from sifwright.make_image.pack_layers.pack import PackOptions
from tests.conftest import run
from tests.system.apptainer.steps import DESCRIBE, PYTHON, Tree, inside
from tests.system.apptainer.trees import extracted

if TYPE_CHECKING:
    from pathlib import Path

# Prints the names of each file that has several.
LINKS = """
import json, os
groups = {}
for folder, _, files in os.walk("."):
    for path in (os.path.join(folder, name) for name in files):
        status = os.lstat(path)
        if status.st_nlink > 1:
            groups.setdefault(status.st_ino, []).append(path)
print(json.dumps(sorted(map(sorted, groups.values()))))
"""
# Holds the date of the build.
LABELS = ".singularity.d/labels.json"
_MODE, _SIZE, _TIME, _CONTENT = 0, 3, 4, 5


def whole(sif: Path, folder: Path, timed: str) -> Tree:
    """Return the tree of the whole SIF, unpacked in the new folder `folder`, which is empty then.

    Times count only below the folder `timed` of the image. Other files have the times of a build.
    """
    folder.mkdir()
    root = _unpacked(sif, folder)
    links = json.loads(inside('"$0" -c "$1"', root, str(PYTHON), LINKS))
    tree: Tree = json.loads(inside('"$0" -c "$1" .', root, str(PYTHON), DESCRIBE))
    inside('rm -rf "$0"', folder, root.name)
    _forget_times(tree, timed)
    tree[LABELS][_SIZE] = tree[LABELS][_CONTENT] = 0
    return {**tree, "hard links": links}


def _forget_times(tree: Tree, timed: str) -> None:
    """Drop times, of symlinks as well: fuse-overlayfs gives them the time of their copy-up."""
    for path, node in tree.items():
        if not path.startswith(f"{timed}/") or node[_MODE].startswith("0o12"):
            node[_TIME] = 0


def without_times(tree: Tree) -> Tree:
    """Return the tree without the traces of a build's day: times, and bytecode with times."""
    links = {"hard links": tree["hard links"]}
    nodes = {path: list(node) for path, node in tree.items() if path not in links}
    nodes = {path: node for path, node in nodes.items() if not path.endswith(".pyc")}
    for node in nodes.values():
        node[_TIME] = 0
    return {**nodes, **links}


def _unpacked(sif: Path, folder: Path) -> Path:
    layers = extracted(sif, folder)
    if len(layers) == 1:
        inside('unsquashfs -quiet -no-progress -dest tree "$0"', folder, str(layers[0]))
        return folder / "tree"
    how = PackOptions(compression="zstd", log=folder / "log")
    return merge(layers, folder, how)


def list_tree(engine: str, sif: Path, below: str) -> Tree:
    """Return the paths below a folder that a user of the SIF sees; it has Python."""
    flags = ("--quiet", "exec", "--fakeroot", "--containall", "--no-home")
    done = run([engine, *flags, sif, "python3", "-c", DESCRIBE, f"/{below}"])
    assert done.returncode == 0, done.stderr
    tree: Tree = {f"{below}/{path}": node for path, node in json.loads(done.stdout).items()}
    _forget_times(tree, below)
    return tree
