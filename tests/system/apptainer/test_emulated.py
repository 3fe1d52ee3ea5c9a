"""An image for aarch64, built on an x86_64 machine by QEMU in a user namespace."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.host.emulation import emulate
from sifwright.host.network import debian_archive
from sifwright.host.network.http import read_file
from sifwright.images.contents.layer_stack import topmost
from tests.conftest import run
from tests.system.apptainer.toys import make_toy, succeeded

if TYPE_CHECKING:
    from tests.system.apptainer.toys import Toy

DEBIAN = debian_archive.address("debian")
SUITE = "bookworm"
PACKAGES = ("bash-static", "busybox-static")
PROGRAMS = (
    *("cat", "cp", "mv", "rm", "ln", "ls", "mkdir", "chmod", "chown", "touch", "find", "id"),
    *("true", "date", "env", "grep", "head", "sleep", "stat", "tail", "sed", "sort", "tr"),
    *("uname", "dirname"),
)
WHY_NOT = emulate.problem("aarch64")
pytestmark = [
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="emulates aarch64 on x86_64"),
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT),
]


@pytest.fixture
def emulated(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """Make a toy of a site with aarch64, on Debian's static programs for arm64."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    root = arm_root(tmp_path)
    succeeded(run([engine, "build", tmp_path / "arm.sif", root]))
    toy = make_toy(tmp_path / "project", tmp_path / "arm.sif")
    site = toy.folder / "defs" / "sites" / "local.yaml"
    site.write_text(json.dumps({**json.loads(site.read_text()), "processor": "aarch64"}))
    return toy


def arm_root(folder: Path) -> Path:
    """Make a tree of two static programs for arm64, under the names of many."""
    release = debian_archive.release(DEBIAN, SUITE)
    listed = debian_archive.packages(release, "arm64")
    files = {fields["Package"]: fields["Filename"] for fields in listed}
    root = folder / "root"
    for name in PACKAGES:
        deb = folder / f"{name}.deb"
        deb.write_bytes(read_file(f"{DEBIAN}/{files[name]}") or b"")
        assert run(["dpkg", "-x", deb, root]).returncode == 0
    for name in ("dev", "etc", "mnt", "proc", "root", "sys", "tmp", "usr/bin", "var/tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        (root / "bin" / name).symlink_to("busybox")
    for name in ("bash", "sh"):
        (root / "bin" / name).symlink_to("bash-static")
    (root / "usr/bin/env").symlink_to("/bin/busybox")
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    (root / "etc" / "group").write_text("root:x:0:\n")
    (root / "etc" / "hosts").touch()
    return root


def test_an_image_of_another_processor(emulated: Toy, engine: str) -> None:
    """Refuse a program of this machine in it."""
    emulated.layer("uname", "uname -m >/machine\nchown 33:33 /machine\n", test="uname -m\n")
    emulated.image("uname")
    done = succeeded(emulated.build("--verbose"))
    assert "aarch64 is emulated" in done.stdout
    assert topmost(emulated.sif, b"machine") == b"aarch64\n"
    assert "arm64" in run([engine, "sif", "header", emulated.sif]).stdout
    again = emulated.build()
    assert "emulated" not in again.stdout
    image = emulated.sif.resolve()
    emulated.layer("foreign", "cp files/true /opt-true\n")
    (emulated.folder / "defs/layers/foreign/files").mkdir()
    (emulated.folder / "defs/layers/foreign/files/true").write_bytes(Path("/bin/true").read_bytes())
    emulated.image("uname", "foreign")
    done = emulated.build()
    assert done.returncode == 6
    assert "'/opt-true': is for x86_64 processors, the site has aarch64" in done.stderr
    assert emulated.sif.resolve() == image
