"""Steps run by the real engine on a stack of squashfs files, and the trees that come of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sifwright.images.contents import listing
from sifwright.images.sif.copy_data import Range, created
from sifwright.images.squashfs.join_layers import join
from sifwright.make_image.pack_layers.merge_layers import merge
from sifwright.make_image.pack_layers.pack import PackedLayer, PackOptions, pack
from sifwright.system import user_namespace

if TYPE_CHECKING:
    from collections.abc import Sequence

# The system's: one below a home folder would not be seen in the container, nor by another user.
PYTHON = Path("/usr/bin/python3")
PROGRAMS = (
    *("bash", "sh", "cat", "cp", "mv", "rm", "ln", "ls", "mkdir", "mkfifo", "chmod", "chown"),
    *("touch", "truncate", "setcap", "find", "id", "true"),
    *("base64", "date", "env", "grep", "head", "seq", "sleep", "stat", "tail", "nohup", "cmp"),
)
# Mounts of the engine, and the libraries, which take long to read.
LEFT_OUT = ("dev", "proc", "sys", "tmp", "root", "etc", "var/tmp", "usr/lib", "usr/lib64")
# Prints the tree as JSON: path -> what it is. The words after the tree are left out. Capabilities
# are asked for by name, because squashfuse 0.1.105 lists them by a wrong one.
DESCRIBE = """
import json, os, stat, sys, zlib
LEFT_OUT = set(sys.argv[2:])
def attributes(path):
    names = [name for name in os.listxattr(path, follow_symlinks=False) if name[:5] == "user."]
    values = {}
    for name in [*names, "security.capability"]:
        try:
            values[name] = os.getxattr(path, name, follow_symlinks=False).hex()
        except OSError:
            pass
    return values
def content(path, status):
    if stat.S_ISLNK(status.st_mode):
        return os.fsdecode(os.readlink(path))
    if not stat.S_ISREG(status.st_mode) or status.st_size > 10**8:
        return ""
    with open(path, "rb") as file:
        return zlib.crc32(file.read())
def node(path):
    s = os.lstat(path)
    folder = stat.S_ISDIR(s.st_mode)
    sizes = [0, 0] if folder else [s.st_size, int(s.st_mtime)]
    return [oct(s.st_mode), s.st_uid, s.st_gid, *sizes, content(path, s), attributes(path)]
def tree(root):
    yield ".", node(root)
    for folder, folders, files in os.walk(root):
        inside = os.path.relpath(folder, root)
        for name in sorted(folders + files):
            path = os.path.normpath(os.path.join(inside, name))
            if path in LEFT_OUT:
                folders.remove(name)
            else:
                yield path, node(os.path.join(root, path))
print(json.dumps(dict(tree(sys.argv[1]))))
"""
# First tree of the cases, as a layer of its own.
POPULATE = """
mkdir -p /data/folder/inner /data/empty
printf one >/data/one
printf two >/data/folder/two
printf three >/data/folder/inner/three
printf linked >/data/link-a
ln /data/link-a /data/link-b
ln -s folder /data/to-folder
ln -s one /data/to-one
chown 33:33 /data/folder/two /data/folder/inner
chmod 2750 /data/folder/inner
cp /usr/bin/true /data/capable
setcap cap_net_raw+ep /data/capable
"""
Tree = dict[str, list[Any]]
# The places of the time and the checksum in what DESCRIBE says of a path.
TIME, CONTENT = 4, 5


def make_root(folder: Path, *programs: str) -> Path:
    """Make a system of a few programs of this machine, with Python."""
    # Builds bind the files that they need of the machine at mnt.
    for name in (
        *("usr/bin", "usr/lib", "usr/lib64", "etc", "proc", "sys", "dev", "tmp", "var/tmp"),
        *("root", "mnt"),
    ):
        (folder / name).mkdir(parents=True)
    for name, target in {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"}.items():
        (folder / name).symlink_to(target)
    (folder / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    (folder / "etc" / "group").write_text("root:x:0:\n")
    for name in (*PROGRAMS, *programs):
        program = shutil.which(name, path=user_namespace.environment()["PATH"])
        assert program, name
        copy_program(Path(program).resolve(), folder / "usr" / "bin" / name, folder)
    copy_program(PYTHON.resolve(), folder / "usr" / "bin" / "python3", folder)
    _copy_library(folder)
    _open_to_all(folder)
    return folder


def _open_to_all(folder: Path) -> None:
    """Let every user read the system, under any umask of the tests."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o644))


def copy_program(program: Path, target: Path, root: Path) -> None:
    shutil.copy(program, target)
    for library in re.findall(r"/\S+", _output(["ldd", str(program)])):
        path = root / library.removeprefix("/").removesuffix(":")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, path)


def _copy_library(root: Path) -> None:
    """Copy the part of Python's library that is needed to describe a tree."""
    library = Path(
        _output([str(PYTHON), "-c", "import os; print(os.path.dirname(os.__file__))"]).strip()
    )
    target = root / library.relative_to("/")
    (target / "lib-dynload").mkdir(parents=True)
    for path in library.glob("*.py"):
        shutil.copy(path, target)
    for name in ("collections", "encodings", "importlib", "json", "re"):
        shutil.copytree(library / name, target / name)


class Stack:
    """Layers, the lowest first, and the folder in which they are made."""

    def __init__(self, folder: Path, how: PackOptions, layers: list[PackedLayer]) -> None:
        self.folder = folder
        self.how = how
        self.layers = layers

    @classmethod
    def start(cls, folder: Path) -> Stack:
        """Return two layers: the small system and the first files of the cases."""
        folder.mkdir(parents=True, exist_ok=True)
        how = PackOptions(compression="zstd", log=folder / "log")
        (folder / "base").mkdir()
        root = make_root(folder / "root")
        os.utime(root, (10**9, 10**9))
        base = pack(root, folder / "base", how)
        stack = cls(folder, how, [base])
        stack.step("populate", POPULATE)
        return stack

    def branch(self, folder: Path) -> Stack:
        """Return another stack on the same layers."""
        folder.mkdir(parents=True)
        return Stack(folder, self.how, list(self.layers))

    def step(self, name: str, script: str, exclude: Sequence[str] = ()) -> Tree:
        """Run a step, add its layer; returns the tree that the step saw at its end."""
        overlay = self.folder / f"{name}.overlay"
        overlay.mkdir()
        # Layers of a list hide those before them for `--overlay` (tried).
        places = [*(f"{layer.squashfs}:ro" for layer in self.layers[1:]), str(overlay)]
        tree = self._execute(script, self.layers[0].squashfs, places)
        into = self.folder / name
        into.mkdir()
        lower = [layer.listing for layer in self.layers]
        changes = overlay / "upper"
        self.layers.append(pack(changes, into, self.how, lower=lower, exclude=exclude))
        settle(tree, listing.read(self.layers[-1].listing))
        return tree

    def tree(self) -> Tree:
        """Return the tree that a user of the stack sees."""
        places = [f"{layer.squashfs}:ro" for layer in self.layers[1:]]
        return self._execute("", self.layers[0].squashfs, places)

    def joined(self) -> Tree:
        """Return the tree of the joined layers, after a check with mksquashfs's own reader."""
        target = self.folder / "joined.sqfs"
        write_joined([layer.squashfs for layer in self.layers], target)
        return self._unpacked("joined", [target])

    def _unpacked(self, name: str, layers: list[Path]) -> Tree:
        path = self.folder / name
        path.mkdir()
        return described(merge(layers, path, self.how))

    def merged(self) -> Tree:
        """Return the tree of the layers without a mount."""
        return self._unpacked("merged", [layer.squashfs for layer in self.layers])

    def _execute(self, script: str, root: Path, overlays: Sequence[str]) -> Tree:
        command = ["apptainer", "--quiet", "exec", "--fakeroot", "--containall", "--no-home"]
        command += [word for overlay in overlays for word in ("--overlay", overlay)]
        words = ["bash", "-euc", f'{script}\npython3 -c "$@"', "step", DESCRIBE, "/", *LEFT_OUT]
        text = _output([*command, str(root), *words])
        tree: Tree = json.loads(text.splitlines()[-1])
        return tree


def settle(seen: Tree, written: Sequence[listing.ListedPath]) -> None:
    """Give what a step saw of its files the times that they have.

    For a FUSE file, the kernel shows the time of the write call. The file system below gets the
    data 1 to 4 ms later (measured with fuse-overlayfs 1.10), sometimes in another second.
    """
    for node in written:
        result = seen.get(os.fsdecode(node.path))
        if node.kind == "file" and result and result[TIME] == node.mtime - 1:
            result[TIME] = node.mtime


def write_joined(layers: Sequence[Path], target: Path) -> None:
    """Join squashfs files to one."""
    ranges = [Range(path=path, size=path.stat().st_size) for path in layers]
    with created(target) as writer:
        for piece in join(ranges):
            writer.write(piece) if isinstance(piece, bytes) else writer.copy(piece)


def described(folder: Path) -> Tree:
    """Describe the tree in a folder as the image's users would have it; the folder is gone then."""
    words = (str(PYTHON), "-c", DESCRIBE, ".", *LEFT_OUT)
    tree: Tree = json.loads(inside('"$0" "$@"', folder, *words))
    inside('rm -rf "$0"', folder.parent, folder.name)
    return tree


def inside(script: str, folder: Path, *words: str) -> str:
    """Run a script in a folder, as the root who owns the image's files."""
    command = [*user_namespace.prefix(), "bash", "-euc", script, *words]
    return _output(command, cwd=folder)


def _output(command: list[str], cwd: Path | None = None) -> str:
    env = user_namespace.environment()
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=env, cwd=cwd)
    assert done.returncode == 0, f"{command[:3]}: {done.stdout}{done.stderr}"
    return done.stdout


def differences(first: Tree, other: Tree) -> dict[str, object]:
    """Return path -> node in either tree, for all that differ."""
    return {
        path: (first.get(path), other.get(path))
        for path in sorted(first.keys() | other.keys())
        if first.get(path) != other.get(path)
    }
