"""The whole way as an ordinary user: a checkout of one's own, its .venv, a build, a run."""

from __future__ import annotations

import os
import pwd
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.make_image.cache.store import Store
from sifwright.make_image.pack_layers.pack import SQUASHFS
from sifwright.system import cache_folder
from tests.checkouts import copy_checkout
from tests.conftest import run
from tests.system.apptainer.machines import old_unshare
from tests.system.apptainer.toys import make_toy, succeeded
from tests.system.apptainer.trees import unpack

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="making a user needs root; as a user, every other test is this one"
)
NAME = f"sifwright-{os.getpid()}"
HELLO = "echo hello >/hello; mkdir /made\nchown 33:33 /hello; touch -d @1400000000 /hello /made\n"
MORE = """rm -r /made; mkdir /made; chown 33:34 /made /hello
cp /usr/bin/true /capable; setcap cap_net_raw+ep /capable
"""


@contextmanager
def user(*options: str) -> Iterator[Path]:
    """Make a user with a home; useradd gives subordinate ids as well."""
    succeeded(run(["useradd", "--create-home", "--shell", "/bin/bash", *options, NAME]))
    try:
        yield Path(pwd.getpwnam(NAME).pw_dir)
    finally:
        run(["userdel", "--remove", NAME])


@pytest.fixture
def home() -> Iterator[Path]:
    with user() as folder:
        yield folder


def _own(folder: Path) -> None:
    """Hand a tree over to the user."""
    for path in (folder, *folder.rglob("*")):
        os.lchown(path, *_ids())


def _ids() -> tuple[int, int]:
    account = pwd.getpwnam(NAME)
    return account.pw_uid, account.pw_gid


def _as_user(home: Path, command: str) -> str:
    """Run a shell command as the user: pip's settings of this run, nothing else of root's."""
    kept = {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_"))}
    env = {**kept, "HOME": str(home), "USER": NAME, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    settings = {"user": NAME, "group": NAME, "extra_groups": [], "umask": 0o077}
    return succeeded(run(["bash", "-c", command], env=env, cwd=home, **settings)).stdout


@pytest.mark.smoke
def test_an_ordinary_user_builds_and_runs(
    tiny_base: Path, home: Path, engine: str, tmp_path: Path
) -> None:
    base = home / "base.sif"
    shutil.copy(tiny_base, base)
    copy_checkout(home / "check out")
    toy = make_toy(home / "project", base)
    toy.layer("hello", HELLO, test="[[ $(id -un) != root ]]\n")
    toy.image("hello")
    _own(home)
    words = " ".join(f"'{word}'" for word in toy.command())
    command = f".venv/bin/sifwright {words}"
    _as_user(home, f"cd 'check out' && make plan && {command}")
    inside = f"{engine} --quiet exec --containall {toy.sif}"
    expected = ["hello", str(_ids()[0])]
    assert _as_user(home, f"{inside} sh -c 'cat /hello; id -u'").split() == expected
    # Owners are those of the image, not the subordinate ids that stood for them.
    assert (unpack(engine, toy.sif, tmp_path) / "hello").stat().st_uid == 33
    assert toy.leftovers() == []
    assert toy.sif.stat().st_uid == _ids()[0]
    # The next step runs on these results, and an older unshare is there.
    toy.layer("more", MORE)
    toy.image("hello", "more")
    programs = old_unshare(home / "bin")
    _own(toy.folder)
    _as_user(home, f"cd 'check out' && PATH={programs}:$PATH {command}")
    tree = unpack(engine, toy.sif, tmp_path / "more")
    for name in ("made", "hello"):
        status = (tree / name).stat()
        assert (status.st_uid, status.st_gid) == (33, 34)
    # Version 2 of the attribute, which names no user.
    assert os.getxattr(tree / "capable", "security.capability")[:4] == b"\1\0\0\2"
    # The results of the user, whose umask differs, are root's, to the byte.
    of_user = Store(root=home / ".cache" / "sifwright" / cache_folder.root().name)
    of_root = Store(root=tmp_path / "cache" / cache_folder.root().name)
    toy.layer("hello", HELLO, test="true\n")
    toy.image("hello")
    succeeded(toy.build("--force", env={**os.environ, "SIFWRIGHT_CACHE": str(tmp_path / "cache")}))
    assert _digests(of_root).items() <= _digests(of_user).items()


def _digests(store: Store) -> dict[str, str]:
    return {str(entry.manifest["layer"]): entry.digest(SQUASHFS) for entry in store.entries()}
