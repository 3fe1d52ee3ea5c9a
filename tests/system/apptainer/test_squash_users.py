"""An ordinary user's layers are root's, to the byte."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import sys
from pathlib import Path

import packaging
import pytest

from sifwright.make_image.pack_layers.pack import PackOptions, pack
from tests.conftest import ROOT
from tests.system.apptainer.machines import old_unshare
from tests.system.apptainer.steps import PYTHON, SAME, inside
from tests.system.apptainer.test_users import _as_user, _own, home

__all__ = ["home"]

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="making a user needs root"),
    # runner.stream leaves the pipe to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
]
STEP = """
rm -r /data/folder; mkdir /data/folder; chown 33:33 /data/folder /data/one; rm /data/link-a
cp /usr/bin/id /data/id; setcap cap_net_admin+ep /data/id
"""
# Prints the digest of the layer that the script SAME makes.
PROGRAM = """
import hashlib, sys
from pathlib import Path
from sifwright.make_image.pack_layers.pack import pack
from tests.system.apptainer.steps import SAME, Stack, differences, inside
stack = Stack.start(Path("stack").absolute())
seen = stack.step("1", sys.argv[1])
assert seen["data/one"][1:3] == [33, 33], seen["data/one"]
for tree in (stack.tree(), stack.merged()):
    assert differences(seen, tree) == {}, differences(seen, tree)
Path("same").mkdir()
Path("packed").mkdir()
inside(SAME, Path("same"))
same = pack(Path("same"), Path("packed"), stack.how).squashfs
print(hashlib.sha256(same.read_bytes()).hexdigest())
"""


def _copy_packages(folder: Path) -> None:
    """Copy the program's imports to a folder that the user may read."""
    shutil.copytree(ROOT / "builder" / "sifwright", folder / "sifwright")
    shutil.copytree(Path(packaging.__file__).parent, folder / "packaging")
    if sys.version_info < (3, 14):  # 3.14 has it itself
        spec = importlib.util.find_spec("backports.zstd")
        for path in (spec and spec.submodule_search_locations) or ():
            shutil.copytree(path, folder / "backports" / "zstd")
    for name in (
        "tests/__init__.py",
        "tests/system/__init__.py",
        "tests/system/apptainer/__init__.py",
        "tests/system/apptainer/steps.py",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)


@pytest.mark.parametrize("is_old", [False, True], ids=["unshare", "old-unshare"])
def test_an_ordinary_users_layers(home: Path, tmp_path: Path, *, is_old: bool) -> None:
    _copy_packages(home / "lib")
    path = f"{old_unshare(home / 'bin')}:/usr/bin:/bin" if is_old else "/usr/bin:/bin"
    _own(home)
    words = ["env", "PYTHONPATH=lib", f"PATH={path}", str(PYTHON), "-c", PROGRAM, STEP]
    digest = _as_user(home, shlex.join(words)).strip()
    (tmp_path / "tree").mkdir()
    inside(SAME, tmp_path / "tree")
    how = PackOptions(compression="zstd", log=tmp_path / "log")
    mine = pack(tmp_path / "tree", tmp_path, how).squashfs.read_bytes()
    assert digest == hashlib.sha256(mine).hexdigest()
