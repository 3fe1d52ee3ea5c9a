"""Builds with one uid and gid, as users without subordinate ids make them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.make_image.pack_layers import rootless_owners
from sifwright.system import ids
from tests.checkouts import copy_checkout
from tests.conftest import run, sifwright
from tests.system.apptainer.steps import make_root
from tests.system.apptainer.test_users import NAME, _as_user, _own, user
from tests.system.apptainer.toys import make_toy, succeeded
from tests.system.apptainer.trees import differences, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.system.apptainer.toys import Toy

pytestmark = pytest.mark.build

FIRST = r"""
mkdir -p /data/folder /data/mail
echo 1 >/data/one; chown 33:34 /data/one; chmod 4754 /data/one
ln /data/one /data/two; ln -s one /data/link; chown -h 5:6 /data/link
chown 8:8 /data/mail; chmod 2775 /data/mail
mkdir /data/mail/sub; echo 2 >/data/mail/sub/new; chown 0:0 /data/mail; chown :8 /data/mail
echo 3 >/data/mail/roots; chown 0:0 /data/mail/roots
echo 4 >/data/back; chown 33:34 /data/back; chown 0 /data/back
for i in 1 2 3 4; do echo >/data/gone$i; chown 12:13 /data/gone$i; rm /data/gone$i; done
for i in 1 2 3 4; do echo >/data/fresh$i; done
"""
# Work of a later layer on earlier files, with programs that keep an owner.
SECOND = r"""
[[ $(stat -c %u:%g:%a /data/two) == 33:34:4754 ]]
[[ $(stat -c %u:%g /data/mail/sub/new) == 0:8 ]]
[[ $(stat -c %u:%g /data/mail/roots) == 0:0 ]]
cp -p /data/one /data/copy
mv /data/link /data/moved
echo 5 >/data/mail/later
chown :7 /data/folder
python3 -c 'import os
with open("/data/kept", "w") as file:
    status = os.stat("/data/copy")
    os.fchown(file.fileno(), status.st_uid, status.st_gid)
os.rename("/data/kept", "/data/copy")
os.chdir("/data/mail")
os.chown("sub", 1, -1)
os.chroot("/data")
os.chown("/../folder", 9, -1)'
"""
TEST = "[[ $(id -u) != 0 || -s /data/mail/later ]]\n"


@pytest.fixture
def toy(tiny: Toy, monkeypatch: pytest.MonkeyPatch) -> Toy:
    tiny.layer("first", FIRST)
    tiny.layer("second", SECOND, test=TEST)
    tiny.image("first", "second")
    monkeypatch.setenv(ids.VARIABLE, "one")
    return tiny


def _built(toy: Toy, engine: str, folder: Path) -> Path:
    succeeded(toy.build("--force"))
    return unpack(engine, toy.sif, folder)


def test_owners_are_those_of_a_usual_build(
    toy: Toy, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unpack cached results with their owners, and run a step on them."""
    before = _built(toy, engine, tmp_path / "before")
    toy.layer("second", f"{SECOND}\n: again\n")
    done = succeeded(toy.build("--json"))
    assert '"step": "first", "state": "cached"' in done.stdout
    assert '"step": "second", "state": "done"' in done.stdout
    after = unpack(engine, toy.sif, tmp_path / "after")
    assert [name for name in differences(before, after) if name.startswith("data")] == []
    status = (after / "data" / "copy").stat()
    assert (status.st_uid, status.st_gid) == (33, 34)
    monkeypatch.delenv(ids.VARIABLE)
    done = succeeded(toy.build("--json", "--force"))
    # Results of the two ways are not mixed.
    assert '"state": "cached"' not in done.stdout
    assert differences(after, unpack(engine, toy.sif, tmp_path / "usual")) == []


def _docker_archive(root: Path, file: Path) -> None:
    """Save a system as `docker save` does, with files of other owners."""
    layer = file.with_suffix(".layer")
    with tarfile.open(layer, "w") as archive:
        archive.add(root, arcname=".")
        for name, (uid, gid) in {"foreign": (33, 34), "shadow": (0, 42)}.items():
            member = tarfile.TarInfo(f"etc/{name}")
            member.uid, member.gid, member.mode = uid, gid, 0o640
            archive.addfile(member)
    system = {"architecture": "amd64", "os": "linux", "config": {}}
    digest = hashlib.sha256(layer.read_bytes()).hexdigest()
    system["rootfs"] = {"type": "layers", "diff_ids": [f"sha256:{digest}"]}
    manifest = [{"Config": "config.json", "RepoTags": [], "Layers": ["layer.tar"]}]
    with tarfile.open(file, "w") as archive:
        archive.add(layer, arcname="layer.tar")
        for name, content in {"config.json": system, "manifest.json": manifest}.items():
            data = json.dumps(content).encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def test_owners_in_a_docker_archive(
    toy: Toy, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _docker_archive(make_root(tmp_path / "root"), tmp_path / "base.tar")
    bootstrap = {"Bootstrap": "docker-archive", "From": str(tmp_path / "base.tar")}
    toy.layer("base-local", "true\n", header={"bootstrap": bootstrap, "provides": ["base"]})
    toy.layer("first", "[[ $(stat -c %u:%g /etc/foreign) == 33:34 ]]\n")
    toy.image("first")
    first = _built(toy, engine, tmp_path / "one")
    status = (first / "etc" / "shadow").stat()
    assert (status.st_uid, status.st_gid) == (0, 42)
    monkeypatch.delenv(ids.VARIABLE)
    assert differences(first, _built(toy, engine, tmp_path / "usual")) == []


@pytest.mark.parametrize(("end", "status"), [("", 7), (" || true", 0)], ids=["fails", "goes-on"])
def test_a_step_that_needs_more_ids_is_named(toy: Toy, end: str, status: int) -> None:
    toy.layer("second", f"python3 -c 'import os; os.setuid(33)'{end}\n", test="true\n")
    done = toy.build()
    errors = done.stdout + done.stderr
    assert (done.returncode == 0) == (status == 0), errors
    assert re.search(r"layer 'second'.*'python3' wanted id 33, which this", errors, re.DOTALL), (
        errors
    )
    assert "docs/how-to/build-elsewhere.md" in errors


@pytest.fixture
def home() -> Iterator[Path]:
    """Make the home of a user without subordinate ids."""
    with user("--key", "SUB_UID_COUNT=0", "--key", "SUB_GID_COUNT=0") as folder:
        yield folder


@pytest.mark.skipif(os.geteuid() != 0, reason="making a user needs root")
def test_a_user_without_subordinate_ids(
    tiny_base: Path, home: Path, engine: str, tmp_path: Path
) -> None:
    assert NAME not in Path("/etc/subuid").read_text()
    shutil.copy(tiny_base, home / "base.sif")
    copy_checkout(home / "checkout")
    toy = make_toy(home / "project", home / "base.sif")
    toy.layer("first", FIRST, test="[[ $(id -u) != 0 ]]\n")
    toy.layer("second", SECOND, test=TEST)
    toy.image("first", "second")
    _own(home)
    program = "cd checkout && make venv && .venv/bin/sifwright"
    options = f"--project '{toy.folder}'"
    message = _as_user(home, f"{program} {options} check local toy")
    assert "builds with one uid and gid: /etc/subuid: user " in message
    words = " ".join(f"'{word}'" for word in toy.command())
    _as_user(home, f"{program} {words}")
    status = (unpack(engine, toy.sif, tmp_path) / "data" / "copy").stat()
    assert (status.st_uid, status.st_gid) == (33, 34)
    assert toy.leftovers() == []
    inside = f"{engine} --quiet exec --containall {toy.sif} cat /data/one"
    assert _as_user(home, inside) == "1\n"
    # The engine gives all files of such a base to root, if it is run by a user.
    _docker_archive(make_root(tmp_path / "root"), home / "base.tar")
    bootstrap = {"Bootstrap": "docker-archive", "From": str(home / "base.tar")}
    toy.layer("base-local", "true\n", header={"bootstrap": bootstrap, "provides": ["base"]})
    toy.layer("first", "[[ $(stat -c %u:%g /etc/foreign) == 33:34 ]]\n")
    toy.image("first")
    _own(home)
    _as_user(home, f"{program} {words}")
    tree = unpack(engine, toy.sif, tmp_path / "archive")
    status = (tree / "etc" / "shadow").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (0, 42, 0o640)
    assert os.listxattr(tree / "etc" / "shadow") == []


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="making a user needs root")
def test_the_first_command_of_the_readme(home: Path, engine: str, tmp_path: Path) -> None:
    """Compare each path of the image with a usual build, but for the folder named here."""
    copy_checkout(home / "checkout")
    _own(home)
    _as_user(home, "cd checkout && make sif")
    foreign = home / "checkout" / "build" / "local" / "pytorch" / "image.sif"
    _as_user(home, f"{engine} exec --containall {foreign} conda-python-simple -c 'import torch'")
    succeeded(sifwright("build", "local", "--output", tmp_path / "build"))
    trees = []
    for name, sif in {"one": foreign, "usual": tmp_path / "build/local/pytorch/image.sif"}.items():
        trees.append(unpack(engine, sif, tmp_path / name))
    # apt downloads as root if there is one id.
    assert differences(*trees) == ["var/cache/apt/archives/partial"]


def _alone(*command: str | Path, owners: Path, tree: Path | None = None) -> Sequence[str]:
    words = [sys.executable, "-P", "-m", "sifwright.system.one_uid", owners, tree or ""]
    done = succeeded(run([*words, *command]))
    return done.stdout.split()


def test_owners_last_from_one_command_to_the_next(tmp_path: Path) -> None:
    owners, tree = tmp_path / "owners", tmp_path / "tree"
    tree.mkdir()
    asked = ("stat", "-c", "%u:%g", tree / "a")
    _alone("sh", "-c", f"echo >{tree}/a; chown 33:34 {tree}/a", owners=owners, tree=tree)
    assert _alone(*asked, owners=owners) == ["33:34"]
    # Another file, which may have the number of the one that has gone.
    (tree / "a").unlink()
    (tree / "a").touch()
    assert _alone(*asked, owners=owners) == ["0:0"]


@pytest.mark.parametrize(
    ("data", "owner"),
    [
        (b"\x08\x21\x10\x22", (33, 34)),
        (b"\x10\xe8\x07", (0, 1000)),
        (b"\x08\x80\x89\x7a", (2_000_000, 0)),
        (b"", (0, 0)),
        (b"\x08", None),
        (b"\x08" + b"\xff" * 9, None),
        (b"\x1a\x01x", None),
    ],
)
def test_owners_that_the_engine_noted(data: bytes, owner: tuple[int, int] | None) -> None:
    assert rootless_owners.owners(data) == owner


def test_files_get_the_owners_that_the_engine_noted(tmp_path: Path) -> None:
    owners, tree = tmp_path / "owners", tmp_path / "tree"
    (tree / "mail").mkdir(parents=True)
    for name in ("mail/roots", "foreign", "later"):
        (tree / name).write_text(name)
        (tree / name).chmod(0o644)
    (tree / "link").symlink_to("foreign")
    for name, data in {"mail": b"\x10\x08", "foreign": b"\x08\x21", "later": b"\x08\x21"}.items():
        os.setxattr(tree / name, rootless_owners.ATTRIBUTE, data)
    (tree / "foreign").chmod(0o4755)
    (tree / "mail").chmod(0o2775)
    # A step changes its owner afterwards.
    _alone("chown", "5:6", tree / "later", owners=owners, tree=tree)
    give = (sys.executable, "-P", "-m", "sifwright.make_image.pack_layers.rootless_owners", tree)
    _alone(*give, owners=owners, tree=tree)
    paths = [tree / name for name in ("mail", "mail/roots", "foreign", "later", "link")]
    message = _alone("stat", "-c", "%u:%g:%a", *paths, owners=owners, tree=tree)
    assert message == ["0:8:2775", "0:0:644", "33:0:4755", "5:6:644", "0:0:777"]
    assert [os.listxattr(path) for path in paths[:-1]] == [[]] * 4


def test_programs_that_it_cannot_run(tmp_path: Path) -> None:
    words = [sys.executable, "-P", "-m", "sifwright.system.one_uid", tmp_path / "owners", ""]
    done = run([*words, "/nonexistent"])
    assert (done.returncode, done.stderr) == (127, "/nonexistent: No such file or directory\n")
    assert run([*words, "sh", "-c", "exit 3"]).returncode == 3
    assert run([*words, "sh", "-c", "kill -9 $$"]).returncode == 137
