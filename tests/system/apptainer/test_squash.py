"""The layer of a step on an overlay: each change to the tree, and nothing else.

The same changes in one tree are in test_cases.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sifwright.images.contents import listing
from tests.system.apptainer.steps import Stack, differences

if TYPE_CHECKING:
    from pathlib import Path

# runner.stream leaves the pipe to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
OWNERS = """
printf w >/data/w
chown 33:33 /data/w
chown -h 33:33 /data/to-one
chown 65534:65534 /data/empty
"""
ATTRIBUTE = r'import os; os.setxattr("/data/w", "user.note", b"\x00\xff")'
SOCKET = 'import _socket; _socket.socket(1).bind("/data/socket")'
NAMES = r"""' a b ' $'new\nline' $'\xff' '\ "'"""
DEEP = "/".join(["a-folder-of-a-path"] * 200)
# name -> what the steps do, the paths that the last layer has, those of them that are gone.
CASES: dict[str, tuple[list[str], set[str], set[str]]] = {
    "nothing": (["true"], set(), set()),
    "made and removed again": (["mkdir /data/x /new; rm -r /data/x /new"], set(), set()),
    "file removed": (["rm /data/one"], {"data"}, {"data/one"}),
    "folder removed": (["rm -r /data/folder"], {"data"}, {"data/folder"}),
    "folder made again": (
        ["rm -r /data/folder; mkdir /data/folder; printf new >/data/folder/new"],
        {"data", "data/folder", "data/folder/new"},
        {"data/folder/two", "data/folder/inner"},
    ),
    "folder in a folder made again": (
        ["rm -r /data/folder; mkdir -p /data/folder/inner; printf 3 >/data/folder/inner/four"],
        {"data", "data/folder", "data/folder/inner", "data/folder/inner/four"},
        {"data/folder/two", "data/folder/inner/three"},
    ),
    "removed, then made again in the next step": (
        ["rm -r /data/folder", "mkdir /data/folder; printf new >/data/folder/new"],
        {"data", "data/folder", "data/folder/new"},
        set(),
    ),
    "file, then folder, then file again": (
        [
            "rm -r /data/folder; printf file >/data/folder",
            "rm /data/folder; mkdir /data/folder; printf 5 >/data/folder/five",
            "rm -r /data/folder; printf file >/data/folder",
        ],
        {"data", "data/folder"},
        set(),
    ),
    "folder by a file": (
        ["rm -r /data/folder; printf file >/data/folder"],
        {"data", "data/folder"},
        set(),
    ),
    "file by a folder": (
        ["rm /data/one; mkdir /data/one; printf in >/data/one/in"],
        {"data", "data/one", "data/one/in"},
        set(),
    ),
    "folder by a symlink": (
        ["mv /data/folder /data/moved; ln -s moved /data/folder"],
        {"data", "data/folder", "data/moved", "data/moved/two", "data/moved/inner"}
        | {"data/moved/inner/three"},
        set(),
    ),
    "symlink by a folder": (
        ["rm /data/to-folder; mkdir /data/to-folder; printf x >/data/to-folder/x"],
        {"data", "data/to-folder", "data/to-folder/x"},
        set(),
    ),
    "symlink by an empty folder": (
        ["rm /data/to-folder; mkdir /data/to-folder"],
        {"data", "data/to-folder"},
        set(),
    ),
    "symlink by a file": (
        ["rm /data/to-one; printf x >/data/to-one"],
        {"data", "data/to-one"},
        set(),
    ),
    "rights of a folder only": (
        ["chmod 3751 /data/empty; chown 33:34 /data/folder"],
        {"data", "data/empty", "data/folder"},
        set(),
    ),
    "hard links": (
        ["ln /data/one /data/one-more; printf x >/data/x; ln /data/x /data/folder/x"],
        {"data", "data/one", "data/one-more", "data/x", "data/folder", "data/folder/x"},
        set(),
    ),
    # fuse-overlayfs copies the other name up.
    "one of two hard links": (["rm /data/link-a"], {"data", "data/link-b"}, {"data/link-a"}),
    "a folder renamed, with a name of a file outside": (
        ["mkdir /data/d; ln /data/one /data/d/one", "mv /data/d /data/e"],
        {"data", "data/e", "data/e/one", "data/one"},
        {"data/d"},
    ),
    "one of two hard links renamed": (
        ["mv /data/link-a /data/empty/link-a"],
        {"data", "data/empty", "data/empty/link-a", "data/link-b"},
        {"data/link-a"},
    ),
    "capabilities and set-user-id": (
        ["cp /usr/bin/id /data/id; setcap cap_net_admin+ep /data/id; chmod 6755 /usr/bin/id"],
        {"data", "data/id", "usr", "usr/bin", "usr/bin/id"},
        set(),
    ),
    "owners and attributes": (
        [f"{OWNERS}python3 -c '{ATTRIBUTE}'"],
        {"data", "data/w", "data/to-one", "data/empty"},
        set(),
    ),
    "names": (
        [
            rf'cd /data; for name in {NAMES}; do printf 1 >"$name"; done',
            rf"cd /data; rm {NAMES}; mkdir $'\xe9'; ln -s $'\xfe' ./-n",
        ],
        {"data", "data/\udce9", "data/-n"},
        {"data/ a b ", "data/new\nline", "data/\udcff", 'data/\\ "'},
    ),
    "sizes": (
        [": >/data/nothing; truncate -s 5G /data/sparse; printf end >>/data/sparse"],
        {"data", "data/nothing", "data/sparse"},
        set(),
    ),
    "sockets and pipes": (
        [f"mkfifo -m 620 /data/fifo; python3 -c '{SOCKET}'"],
        {"data", "data/fifo", "data/socket"},
        set(),
    ),
    "deep": ([f"mkdir -p /data/{DEEP}; printf x >/data/{DEEP}/x"], {"data"}, set()),
}


# Changes that an overlay may get wrong, see normalise_upper.py; the others need no second run.
DOUBTED = {
    "one of two hard links",
    "a folder renamed, with a name of a file outside",
    "one of two hard links renamed",
    "removed, then made again in the next step",
}


@pytest.fixture(scope="module")
def layers(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Stack:
    assert engine
    return Stack.start(tmp_path_factory.mktemp("stack"))


def _last(stack: Stack) -> dict[str, listing.ListedPath]:
    """Return the paths of the last layer but for the root, which every layer has."""
    nodes = listing.read(stack.layers[-1].listing)
    return {os.fsdecode(node.path): node for node in nodes if node.path}


@pytest.mark.parametrize("case", CASES)
def test_a_layer_is_what_the_step_did(layers: Stack, tmp_path: Path, case: str) -> None:
    scripts, there, gone = CASES[case]
    stack = layers.branch(tmp_path / "stack")
    for number, script in enumerate(scripts):
        seen = stack.step(str(number), script)
        assert differences(seen, stack.tree()) == {}
    assert differences(seen, stack.merged()) == {}
    assert differences(seen, stack.joined()) == {}
    assert any(layer.doubts for layer in stack.layers[1:]) == (case in DOUBTED)
    result = _last(stack)
    assert {path for path, node in result.items() if node.is_whiteout} == gone
    if case != "deep":
        assert result.keys() == there | gone


@pytest.mark.parametrize("umask", ["077", "007"])
def test_the_builders_umask_does_not_matter(layers: Stack, tmp_path: Path, umask: str) -> None:
    stack = layers.branch(tmp_path / "stack")
    before = os.umask(int(umask, 8))
    try:
        seen = stack.step(
            "umask", "umask 022; mkdir /data/new; printf x >/data/new/x; rm /data/one"
        )
        assert differences(seen, stack.tree()) == {}
        assert differences(seen, stack.merged()) == {}
    finally:
        os.umask(before)
    result = _last(stack)
    assert (result["data/new"].mode, result["data/new/x"].mode) == (0o755, 0o644)
    assert seen["."][0] == "0o40755"


def test_files_of_the_engine_stay_out(layers: Stack, tmp_path: Path) -> None:
    stack = layers.branch(tmp_path / "stack")
    stack.step("1", "mkdir -p /.own/deep /data/empty/mount; printf x >/.own/deep/x")
    assert ".own/deep/x" in _last(stack)
    stack.layers.pop()
    exclude = ["/.own", "/data/empty/mount/"]
    stack.step("2", "mkdir -p /.own/deep /data/empty/mount; printf x >/.own/deep/x", exclude)
    assert _last(stack) == {}


def test_holes_take_no_room(layers: Stack, tmp_path: Path) -> None:
    """Count no room for holes, which take none where the layer is unpacked either."""
    stack = layers.branch(tmp_path / "stack")
    hole = "truncate -s 200M /data/x; head -c 2000000 /dev/urandom >>/data/x; ln /data/x /data/y"
    stack.step("hole", hole)
    assert 2_000_000 <= stack.layers[-1].bytes < 3_000_000
