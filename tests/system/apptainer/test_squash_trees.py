"""Upper directories made by hand: both overlay drivers, and what is refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import BuildError, MachineError
from sifwright.images.contents import listing
from sifwright.make_image.pack_layers.merge_layers import flatten, merge
from sifwright.make_image.pack_layers.pack import PackedLayer, PackOptions, pack
from sifwright.system import user_namespace
from tests.conftest import run
from tests.system.apptainer.steps import Tree, described, differences, inside

if TYPE_CHECKING:
    from pathlib import Path

# runner.stream leaves the pipe to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")

LOWER = """
mkdir -p gone/deep kept/inner same
printf 1 >gone/deep/one; printf 2 >kept/two; printf 3 >kept/inner/three; printf 4 >four
printf 5 >five
chown 33:33 kept/two; chmod 1770 kept; chown 33:34 same
"""
# Contents of the image after the change; each driver notes it in its own way below.
CHANGED = """
rm -r gone/deep kept/inner kept/two four
mkdir kept/inner; printf new >kept/inner/new; printf x >five
"""
OPAQUE = 'import os, sys; [os.setxattr(path, sys.argv[1], b"y") for path in sys.argv[2:]]'
DRIVERS = {
    "kernel": (
        "mknod four c 0 0; mknod gone/deep c 0 0",
        ["user.overlay.opaque", "kept", "kept/inner"],
    ),
    "kernel, as root": (
        "mknod four c 0 0; mknod gone/deep c 0 0",
        ["trusted.overlay.opaque", "kept", "kept/inner"],
    ),
    "fuse-overlayfs": (
        "mknod four c 0 0; mknod gone/deep c 0 0; mknod kept/.wh..opq c 0 0; : >kept/.wh..wh..opq",
        ["user.fuseoverlayfs.opaque", "kept"],
    ),
    "fuse-overlayfs that may make no devices": (
        ": >.wh.four; : >gone/.wh.deep; : >kept/.wh..wh..opq; : >kept/inner/.wh..wh..opq",
        [],
    ),
    "a folder beside its whiteout": (": >.wh.four; : >gone/.wh.deep; : >.wh.kept", []),
}
RESULTS = ["files.json.gz", "layer.sqfs"]
GONE = {"four", "gone/deep", "kept/two", "kept/inner/three"}
MOUNT = "mount -t overlay -o userxattr,lowerdir=lower,upperdir=upper,workdir=work overlay mnt"
UPPER = """
mkdir -p gone kept/inner same
printf new >kept/inner/new; printf x >five
chmod 1770 kept; chown 33:34 same
"""


@pytest.fixture
def how(tmp_path: Path) -> PackOptions:
    return PackOptions(compression="zstd", log=tmp_path / "log")


def _make_tree(folder: Path, script: str, *words: str) -> Path:
    """Make a tree by a script."""
    folder.mkdir(parents=True)
    inside(script, folder, *words)
    return folder


def _packed(folder: Path, how: PackOptions, script: str, *lower: PackedLayer) -> PackedLayer:
    """Pack the layer of a tree made by a script."""
    tree = _make_tree(folder, script)
    into = folder.with_name(f"{folder.name}-packed")
    into.mkdir()
    return pack(tree, into, how, lower=[layer.listing for layer in lower])


def _merged(folder: Path, how: PackOptions, *layers: PackedLayer) -> Tree:
    folder.mkdir()
    return described(merge([layer.squashfs for layer in layers], folder, how))


def _content(tree: Tree) -> Tree:
    """Return the tree without times, which differ between trees made one after the other."""
    return {path: [*node[:4], *node[5:]] for path, node in tree.items() if path != "."}


def _nodes(layer: PackedLayer) -> dict[str, listing.ListedPath]:
    return {os.fsdecode(node.path): node for node in listing.read(layer.listing)}


@pytest.mark.parametrize("driver", DRIVERS)
def test_each_drivers_notes_become_whiteouts(
    tmp_path: Path, how: PackOptions, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, marks = DRIVERS[driver]
    if driver == "kernel, as root":
        if os.geteuid() != 0:
            pytest.skip("only root may set such attributes")
        # The attribute can be seen outside of the namespace only.
        monkeypatch.setattr(user_namespace, "prefix", lambda *_: [])
    base = _packed(tmp_path / "base", how, LOWER)
    words = f"\npython3 -c '{OPAQUE}' {' '.join(marks)}" if marks else ""
    layer = _packed(tmp_path / "upper", how, UPPER + script + words, base)
    nodes = _nodes(layer)
    # Unchanged files are not in it, nor files of the driver.
    assert {path for path, node in nodes.items() if node.is_whiteout} == GONE
    assert nodes.keys() == GONE | {"", "gone", "kept", "kept/inner", "kept/inner/new", "five"}
    assert all(not node.xattrs for node in nodes.values())
    expected = described(_make_tree(tmp_path / "expected", LOWER + CHANGED))
    tree = _merged(tmp_path / "merged", how, base, layer)
    assert differences(_content(tree), _content(expected)) == {}


def test_the_kernels_own_overlay(tmp_path: Path, how: PackOptions) -> None:
    """Mount it for real, as an ordinary user may (since Linux 5.11)."""
    base = _packed(tmp_path / "base", how, LOWER)
    merge([base.squashfs], tmp_path, how).rename(tmp_path / "lower")
    change = f"{CHANGED}rm -r gone; mkdir gone; chmod 700 same"
    mounts = f"mkdir upper work mnt; {MOUNT}; cd mnt; {change}"
    command = [
        *user_namespace.prefix(),
        *([] if user_namespace.prefix() else ["unshare"]),
        "--mount",
    ]
    done = run([*command, "bash", "-euc", mounts], cwd=tmp_path)
    if "mount" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    (tmp_path / "packed").mkdir()
    layer = pack(tmp_path / "upper", tmp_path / "packed", how, lower=[base.listing])
    assert {path for path, node in _nodes(layer).items() if node.is_whiteout} == GONE
    expected = described(_make_tree(tmp_path / "expected", LOWER + change))
    tree = _merged(tmp_path / "merged", how, base, layer)
    assert differences(_content(tree), _content(expected)) == {}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("mkdir -p a; printf x >a/.wh.b", "'.wh.' means a removed file"),
        ("mkdir .wh.b", "'.wh.' means a removed file"),
        (f"mkdir a; python3 -c '{OPAQUE}' user.overlay.redirect a", "(user.overlay.redirect)"),
        (f": >a; python3 -c '{OPAQUE}' user.overlay.metacopy a", "(user.overlay.metacopy)"),
        (f": >a; python3 -c '{OPAQUE}' user.containers.override_stat a", "elsewhere"),
    ],
)
def test_trees_that_cannot_be_packed_are_refused(
    tmp_path: Path, how: PackOptions, script: str, message: str
) -> None:
    with pytest.raises(BuildError) as caught:
        _packed(tmp_path / "upper", how, script)
    assert message in str(caught.value)
    assert "Traceback" not in how.log.read_text()


@pytest.mark.parametrize("compression", ["zstd", "gzip"])
def test_compression_is_the_sites(tmp_path: Path, compression: str) -> None:
    how = PackOptions(compression=compression, log=tmp_path / "log")
    layer = _packed(tmp_path / "tree", how, LOWER)
    shown = run(["unsquashfs", "-s", layer.squashfs]).stdout
    assert f"Compression {compression}" in shown
    assert ("compression-level 9" in shown) == (compression == "zstd")


def test_an_older_kernel_gets_its_whiteouts_from_mksquashfs(
    tmp_path: Path, how: PackOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Use it, as Linux before 5.8 lets nobody but root make whiteouts."""
    names = [b" a b ", b"new\nline", b"\xff", b'\\"', b"#", b"x y/z", b"plain", b"-x"]
    base, upper = tmp_path / "base", tmp_path / "upper"
    for name in names:
        _write(base, name)
        folder, _, last = name.rpartition(b"/")
        _write(upper, folder + b"/.wh." + last if folder else b".wh." + last)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    lower = pack(base, tmp_path / "one", how)
    monkeypatch.setenv("PYTHONPATH", str(_old_kernel(tmp_path)))
    layer = pack(upper, tmp_path / "two", how, lower=[lower.listing])
    assert (tmp_path / "asked").exists()
    assert {node.path for node in listing.read(layer.listing) if node.is_whiteout} == set(names)
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == RESULTS
    monkeypatch.undo()
    assert _merged(tmp_path / "merged", how, lower, layer).keys() == {".", "x y"}


def _write(folder: Path, name: bytes) -> None:
    path = folder / os.fsdecode(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def _old_kernel(tmp_path: Path) -> Path:
    """Make a folder for PYTHONPATH with which Python may make no devices."""
    folder = tmp_path / "old-kernel"
    folder.mkdir()
    lines = [
        "import errno, os",
        "def mknod(path, *_):",
        f"    open({str(tmp_path / 'asked')!r}, 'w').close()",
        "    raise PermissionError(errno.EPERM, 'Operation not permitted', path)",
        "os.mknod = mknod",
    ]
    (folder / "sitecustomize.py").write_text("\n".join(lines))
    return folder


def test_flat_is_packed_as_a_base_is(tmp_path: Path, how: PackOptions) -> None:
    """Keep hard links, capabilities, owners and times; the listing is that of the tree."""
    base = _packed(tmp_path / "base", how, f"{LOWER}ln five six; touch -d @1000000000 kept/two")
    layer = _packed(tmp_path / "upper", how, f"{UPPER}: >.wh.four; setcap cap_chown+ep five", base)
    (tmp_path / "flat").mkdir()
    flat = flatten([base.squashfs, layer.squashfs], tmp_path / "flat", how, work_dir=tmp_path)
    nodes = _nodes(flat)
    assert "four" not in nodes
    assert (nodes["kept/two"].uid, nodes["kept/two"].mtime) == (33, 1_000_000_000)
    # The new file took the place of one of the two names.
    assert (nodes["five"].links, nodes["six"].size) == (0, 1)
    assert nodes["five"].xattrs[0][0] == b"security.capability"
    assert sorted(path.name for path in (tmp_path / "flat").iterdir()) == RESULTS
    assert flat.entries == len(nodes)
    assert flat.bytes == sum(node.size for node in nodes.values())


def test_folders_keep_owner_mode_and_time(tmp_path: Path, how: PackOptions) -> None:
    """Keep them while whiteouts are made there, and folders are merged with those below."""
    base = _packed(tmp_path / "base", how, f"{LOWER}mkdir -m 3750 new; chown 33:34 new")
    change = ": >kept/.wh.two; : >gone/.wh.deep; chmod 2705 gone; chown 35:36 gone kept"
    script = f"{UPPER}{change}; touch -d @1000000000 gone kept kept/inner"
    layer = _packed(tmp_path / "upper", how, script, base)
    tree = merge([base.squashfs, layer.squashfs], tmp_path, how)
    shown = inside("stat -c '%n %a %u %g %Y' gone kept kept/inner", tree).splitlines()
    assert shown == [
        "gone 2705 35 36 1000000000",
        "kept 1770 35 36 1000000000",
        "kept/inner 755 0 0 1000000000",
    ]


def test_no_user_namespace_is_named(
    tmp_path: Path, how: PackOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (("unshare", "--no-such-option"), ("no-such-program",)):
        # `_way` remembers its result in this process.
        user_namespace._way.cache_clear()  # noqa: SLF001
        monkeypatch.setattr(user_namespace, "_UNSHARE", words)
        with pytest.raises(MachineError, match="no user namespace with subordinate ids"):
            _packed_nothing(tmp_path, how)
    user_namespace._way.cache_clear()  # noqa: SLF001


def _packed_nothing(tmp_path: Path, how: PackOptions) -> PackedLayer:
    upper = tmp_path / "upper"
    upper.mkdir(exist_ok=True)
    return pack(upper, tmp_path, how)


def test_a_file_that_cannot_be_read_is_not_packed_as_an_empty_one(
    tmp_path: Path, how: PackOptions
) -> None:
    """Refuse a file of an owner outside the namespace, which even root cannot read."""
    if os.geteuid() != 0 or not user_namespace.prefix():
        pytest.skip("needs root, and a namespace")
    upper = _make_tree(tmp_path / "upper", "printf secret >file; chmod 600 file")
    os.chown(upper / "file", 4_000_000, 4_000_000)
    with pytest.raises(BuildError, match="file"):
        pack(upper, tmp_path, how)


def test_a_full_disk_is_named(tmp_path: Path, how: PackOptions) -> None:
    upper = _make_tree(tmp_path / "upper", "head -c 3000000 /dev/urandom >noise")
    small = tmp_path / "small"
    small.mkdir()
    if run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small]).returncode != 0:
        pytest.skip("only root may mount a small disk")
    try:
        with pytest.raises(BuildError, match="No space left on device"):
            pack(upper, small, how)
    finally:
        run(["umount", small])


def test_a_lost_answer_is_an_error(
    tmp_path: Path, how: PackOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raise an error if the kernel kills the packing for its memory."""
    monkeypatch.setattr(user_namespace, "prefix", lambda *_: ["sh", "-c", "echo oh"])
    with pytest.raises(BuildError, match="broke off: oh"):
        _packed_nothing(tmp_path, how)
