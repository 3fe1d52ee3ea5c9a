"""Bundles: what one has is what comes out of it, and each other one is refused."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import BuildError
from sifwright.make_image.downloads.fetch_file import open_store
from sifwright.make_image.lock import bundle, locked_files
from sifwright.system import files
from tests.unit.locks import LOCK, write_debs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sifwright.make_image.lock_format.lock_file import Lock

WHEEL = "numpy-2.0-py3-none-any.whl"


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lock:
    """Make a lock whose files are in a folder, and an empty cache."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "filled"
    debs = write_debs(folder / "repository", "toy")
    (folder / "wheels").mkdir()
    (folder / "wheels" / WHEEL).write_bytes(b"a wheel")
    wheel = replace(LOCK.wheels[0], sha256=files.sha256(folder / "wheels" / WHEEL))
    return replace(LOCK, debs=tuple(debs), wheels=(wheel,), sources=())


@pytest.fixture
def packed(lock: Lock, tmp_path: Path) -> Path:
    audit = tmp_path / "audit"
    audit.mkdir()
    (audit / "osv.zip").write_bytes(b"data")
    bundle.write(lock, tmp_path / "filled", tmp_path / "b.tar", audit)
    return tmp_path / "b.tar"


def unpack(path: Path, lock: Lock) -> dict[str, bytes]:
    with open_store().folder() as folder:
        bundle.unpack(path, lock, open_store(), folder)
        return {
            str(file.relative_to(folder)): file.read_bytes()
            for file in folder.rglob("*")
            if file.is_file()
        }


def test_a_bundle_gives_the_lock_and_its_files(packed: Path, lock: Lock) -> None:
    assert bundle.lock_of(packed) == lock
    unpacked = unpack(packed, lock)
    assert unpacked.keys() == locked_files.files_of(lock).keys()
    assert unpacked[f"wheels/{WHEEL}"] == b"a wheel"


def test_two_bundles_of_a_lock_are_the_same(packed: Path, lock: Lock, tmp_path: Path) -> None:
    os.utime(tmp_path / "filled" / "wheels" / WHEEL, (1, 1))
    (tmp_path / "filled" / "wheels" / WHEEL).chmod(0o600)
    bundle.write(lock, tmp_path / "filled", tmp_path / "c.tar", tmp_path / "audit")
    assert (tmp_path / "c.tar").read_bytes() == packed.read_bytes()


def rewritten(path: Path, change: Callable[[tarfile.TarInfo], bytes | None]) -> None:
    """Write a bundle again; `change` gives a member other bytes, or changes the member."""
    members = []
    with tarfile.open(path) as old:
        for member in old:
            file = old.extractfile(member)
            members.append((member, file.read() if file else b""))
    with tarfile.open(path, "w") as new:
        for member, data in members:
            other = change(member)
            content = io.BytesIO(data if other is None else other)
            member.size = len(content.getvalue())
            new.addfile(member, content)


def renamed(name: str) -> Callable[[tarfile.TarInfo], None]:
    def change(member: tarfile.TarInfo) -> None:
        if member.name.startswith("wheels/"):
            member.name = name

    return change


BAD: dict[str, tuple[Callable[[tarfile.TarInfo], bytes | None], str]] = {
    "another wheel": (
        lambda member: b"else" if member.name.startswith("wheels/") else None,
        "its sha256 is",
    ),
    "out of the folder": (renamed("../x.whl"), "it has ../x.whl, which the lock does not name"),
    "out of audit": (renamed("audit/../x.whl"), "which the lock does not name"),
    "absolute": (renamed("/x.whl"), "it has /x.whl, which the lock does not name"),
    "another file": (renamed("wheels/other.whl"), "which the lock does not name"),
    "an image": (renamed(f"image/blobs/sha256/{'1' * 64}"), "its sha256 is"),
    "no wheel": (renamed("audit/x.whl"), f"it lacks wheels/{WHEEL}"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bundle_with_something_else_is_refused(name: str, packed: Path, lock: Lock) -> None:
    change, why = BAD[name]
    rewritten(packed, change)
    with pytest.raises(BuildError) as refused:
        unpack(packed, lock)
    assert why in str(refused.value)
    assert f"{packed}: " in str(refused.value)


def test_a_bundle_that_is_cut_off_is_refused_wherever(packed: Path, lock: Lock) -> None:
    data = packed.read_bytes()
    for size in range(0, len(data) - 10240, 512):
        packed.write_bytes(data[:size])
        with pytest.raises(BuildError, match=r"damaged|no bundle|it lacks"):
            _read_all(packed, lock)


def _read_all(path: Path, lock: Lock) -> None:
    """Read a bundle as a build does."""
    assert bundle.lock_of(path) == lock
    unpack(path, lock)


def test_other_files_than_bundles_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "other.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("file"), io.BytesIO())
    (tmp_path / "text.tar").write_text("no tar")
    for name in ("other.tar", "text.tar", "missing.tar"):
        with pytest.raises(BuildError, match=r"no bundle|cannot be read"):
            bundle.lock_of(tmp_path / name)


def _blob(folder: Path, data: bytes) -> dict[str, object]:
    digest = hashlib.sha256(data).hexdigest()
    path = folder / "image/blobs/sha256" / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return {"digest": f"sha256:{digest}", "size": len(data)}


@pytest.fixture
def image(lock: Lock, tmp_path: Path) -> tuple[Lock, dict[str, str]]:
    """Return the lock of an image of a registry, and the digests of its parts."""
    folder = tmp_path / "filled"
    parts = {"config": _blob(folder, b"{}"), "layer": _blob(folder, b"a layer")}
    manifest = {"schemaVersion": 2, "config": parts["config"], "layers": [parts["layer"]]}
    parts["manifest"] = _blob(folder, json.dumps(manifest).encode())
    entry = {**parts["manifest"], "platform": {"architecture": "amd64", "os": "linux"}}
    index = {"schemaVersion": 2, "manifests": [entry]}
    parts["index"] = _blob(folder, json.dumps(index).encode())
    digests = {name: str(part["digest"]) for name, part in parts.items()}
    base = {"bootstrap": "docker", "reference": "x:1", "digest": digests["index"]}
    return replace(lock, base=base), digests


def test_the_base_image_is_that_of_the_processor(
    image: tuple[Lock, dict[str, str]], tmp_path: Path
) -> None:
    lock, digests = image
    bundle.write(lock, tmp_path / "filled", tmp_path / "b.tar", None)
    unpacked = unpack(tmp_path / "b.tar", lock)
    (entry,) = json.loads(unpacked["image/index.json"])["manifests"]
    assert entry["digest"] == digests["manifest"]
    other = replace(lock, processor="aarch64")
    bundle.write(other, tmp_path / "filled", tmp_path / "b.tar", None)
    with pytest.raises(BuildError, match="aarch64"):
        unpack(tmp_path / "b.tar", other)


@pytest.mark.parametrize("lost", ["index", "manifest", "config", "layer"])
def test_a_bundle_without_a_part_of_its_image_is_refused(
    image: tuple[Lock, dict[str, str]], tmp_path: Path, lost: str
) -> None:
    lock, digests = image
    (tmp_path / "filled/image/blobs" / digests[lost].replace(":", "/")).unlink()
    bundle.write(lock, tmp_path / "filled", tmp_path / "b.tar", None)
    with pytest.raises(BuildError, match=f"it lacks {digests[lost]} of the base image"):
        unpack(tmp_path / "b.tar", lock)


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.LNKTYPE, "pylock.toml"),
        (tarfile.CHRTYPE, ""),
        (tarfile.FIFOTYPE, ""),
    ],
)
def test_members_other_than_plain_files_are_refused(
    packed: Path, lock: Lock, kind: bytes, target: str
) -> None:
    def change(member: tarfile.TarInfo) -> bytes | None:
        if not member.name.startswith("wheels/"):
            return None
        member.type, member.linkname = kind, target
        return b""

    rewritten(packed, change)
    with pytest.raises(BuildError, match=f"wheels/{WHEEL} is no plain file"):
        unpack(packed, lock)
