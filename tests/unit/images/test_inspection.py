"""The contents of a squashfs, layers that lie over each other, and the packages in them."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from sifwright.errors import UsageError
from sifwright.images.contents import packages
from sifwright.images.contents.layer_stack import LayeredNode, stacked
from sifwright.images.contents.listing import ListedPath
from sifwright.images.contents.squashed import Squashed
from sifwright.system.terminal import escape_name
from tests.conftest import run


def file(path: str, size: int = 1, **facts: object) -> ListedPath:
    return ListedPath(path=path.encode(), kind="file", size=size, **facts)  # type: ignore[arg-type]


def folder(path: str) -> ListedPath:
    return ListedPath(path=path.encode(), kind="folder")


def placed(*nodes: ListedPath) -> dict[bytes, LayeredNode]:
    return {node.path: LayeredNode(node=node, layer=0) for node in nodes}


@pytest.mark.parametrize("compression", ["gzip", "xz", "zstd"])
def test_every_kind_name_and_byte(tmp_path: Path, compression: str) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    names = {b"a b": 3, b"new\nline": 2, b'q"uote': 1, b"\xff\xfe": 0, b"large": 300_000}
    for name, size in names.items():
        (tree / os.fsdecode(name)).write_bytes(os.urandom(size))
    (tree / "a b").chmod(0o4755)
    (tree / "hard").hardlink_to(tree / "a b")
    (tree / "lnk").symlink_to("tar\nget x")
    os.truncate(tree / "large", 3_000_000)
    os.mkfifo(tree / "fifo")
    os.mknod(tree / "agent", stat.S_IFSOCK)
    devices = ("disk b 640 0 6 259 300", "line c 640 0 5 4 64", "gone c 644 0 0 0 0")
    words = [word for device in devices for word in ("-p", device)]
    packed = tmp_path / "packed"
    done = run(["mksquashfs", tree, packed, "-quiet", "-no-progress", "-comp", compression, *words])
    assert done.returncode == 0, done.stderr
    squashed = Squashed(path=packed)
    results = {node.path: node for node in squashed.nodes()}
    kinds = {path: node.kind for path, node in results.items()}
    others = {b"": "folder", b"lnk": "symlink", b"gone": "whiteout", b"hard": "file"}
    special = {b"fifo": "fifo", b"agent": "socket", b"disk": "block device"}
    special[b"line"] = "character device"
    assert kinds == {**dict.fromkeys(names, "file"), **others, **special}
    assert (results[b"a b"].mode, results[b"a b"].size, results[b"disk"].gid) == (0o4755, 3, 6)
    assert results[b"a b"].links == results[b"hard"].links != 0
    assert (results[b"lnk"].target, results[b"disk"].device) == (b"tar\nget x", (259, 300))
    contents = {name: (tree / os.fsdecode(name)).read_bytes() for name in names}
    assert squashed.texts({*names, b"missing", b"lnk"}) == contents
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    assert squashed.digests(names) == digests


def test_another_compression_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    packed = tmp_path / "packed"
    run(["mksquashfs", tmp_path / "tree", packed, "-quiet", "-comp", "lz4"])
    with pytest.raises(
        UsageError, match=r"is packed by lz4, by neither .*\n.*apptainer build NEW.sif"
    ):
        Squashed(path=packed).nodes()


def test_the_highest_layer_wins_and_only_folders_are_merged() -> None:
    base = [folder("d"), file("d/one"), file("d/two"), folder("x"), file("x/in")]
    base += [file("y"), folder("w"), file("w/in")]
    top = [folder("d"), file("d/two", 2), file("x"), folder("y"), file("y/new")]
    top += [ListedPath.whiteout(b"w"), ListedPath.whiteout(b"never")]
    tree = stacked([base, top])
    assert {path: (node.node.kind, node.node.size, node.layer) for path, node in tree.items()} == {
        b"d": ("folder", 0, 1),
        b"d/one": ("file", 1, 0),
        b"d/two": ("file", 2, 1),
        b"x": ("file", 1, 1),
        b"y": ("folder", 0, 1),
        b"y/new": ("file", 1, 1),
    }


def test_a_whiteout_and_a_new_folder_of_that_name() -> None:
    listings = [
        [folder("d"), file("d/old")],
        [ListedPath.whiteout(b"d")],
        [folder("d"), file("d/new")],
    ]
    assert set(stacked(listings)) == {b"d", b"d/new"}


STATUS = b"""Package: bash
Status: install ok installed
Architecture: amd64
Version: 5.2

Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36

Package: gone
Status: deinstall ok config-files
Version: 1
"""
DEP5 = b"Format: x\n\nFiles: *\nLicense: GPL-3+\n text\n\nLicense: MIT\n\nLicense: GPL-3+\n"
SITE = b"opt/venv/lib/python3.11/site-packages"


def test_debian_packages() -> None:
    texts = {
        b"var/lib/dpkg/status": STATUS,
        b"var/lib/dpkg/info/bash.list": b"/.\n/bin\n/bin/bash\n",
        b"var/lib/dpkg/info/libc6:amd64.list": b"/usr/lib/libc.so\n",
        b"usr/share/doc/bash/copyright": DEP5,
        b"usr/share/doc/libc6/copyright": b"free text, License: all of it\n",
    }
    bin_ = ListedPath(path=b"bin", kind="symlink", target=b"usr/bin")
    bash, libc = packages.find(texts, placed(bin_))
    assert (bash.name, bash.version, bash.licence) == ("bash", "5.2", "GPL-3+, MIT")
    assert b"usr/bin/bash" in bash.files
    assert (libc.licence, libc.files) == ("see copyright", (b"usr/lib/libc.so",))


def test_a_licence_file_of_another_package() -> None:
    texts = {b"var/lib/dpkg/status": STATUS, b"usr/share/doc/base/copyright": DEP5}
    link = ListedPath(path=b"usr/share/doc/bash", kind="symlink", target=b"base")
    assert packages.find(texts, placed(link))[0].licence == "GPL-3+, MIT"


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        ("License-Expression: MIT OR Apache-2.0\nLicense: other\n", "MIT OR Apache-2.0"),
        ("License: BSD\n", "BSD"),
        (
            f"License: {'long ' * 30}\nClassifier: License :: OSI Approved :: MIT License\n",
            "MIT License",
        ),
        ("Classifier: License :: OSI Approved\nClassifier: Topic :: x\n", "OSI Approved"),
        ("", "not stated"),
    ],
)
def test_python_licences(metadata: str, licence: str) -> None:
    text = f"Metadata-Version: 2.4\nName: torch\nVersion: 2.1\n{metadata}\nbody\nName: not this\n"
    [packages_found] = packages.find({SITE + b"/torch-2.1.dist-info/METADATA": text.encode()}, {})
    package = (packages_found.kind, packages_found.name, packages_found.version)
    assert (*package, packages_found.licence) == ("python", "torch", "2.1", licence)


def test_files_of_a_python_distribution() -> None:
    record = b'torch/a.py,sha256=x,1\n"torch/with,comma",,\n../../../bin/torchrun,,\n'
    texts = {
        SITE + b"/torch.dist-info/METADATA": b"Name: torch\nVersion: 1\n",
        SITE + b"/torch.dist-info/RECORD": record,
    }
    [packages_found] = packages.find(texts, {})
    assert packages_found.files == (
        SITE + b"/torch/a.py",
        SITE + b"/torch/with,comma",
        b"opt/venv/bin/torchrun",
    )


def test_requested_files() -> None:
    some = [SITE + b"/a.dist-info/METADATA", b"var/lib/dpkg/status"]
    more = [SITE + b"/a.dist-info/RECORD", b"var/lib/dpkg/info/a.list"]
    more.append(b"usr/share/doc/a/copyright")
    paths = [*some, *more, b"var/lib/dpkg/info/a.postinst", b"etc/METADATA"]
    assert packages.sources(paths, names_only=True) == some
    assert packages.sources(paths, names_only=False) == [*some, *more]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"plain/caf\xc3\xa9", "plain/café"),
        (b"two\nlines\x1b[31m", "two\\nlines\\x1b[31m"),
        (b"\xff\x80", "\\xff\\x80"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("lone \ud800", "lone \\ud800"),
        (b"back\\n", "back\\\\n"),
    ],
)
def test_names_are_shown_on_one_line(name: bytes | str, text: str) -> None:
    assert escape_name(name) == text
    assert escape_name(name).isprintable()
