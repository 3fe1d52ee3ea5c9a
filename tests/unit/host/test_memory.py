"""Memory between runs: digests of large files, and the mirror of this machine's apt."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from sifwright.host.network import apt_mirror
from sifwright.system import digest_cache, fact_cache, files

MIRROR = "http://mirror.example/debian"
APT_GET = """#!/bin/sh
echo asked >>"{folder}/asked"
echo "http://security.example/debian|Debian-Security|Debian"
echo "http://user:word@mirror.example/debian|Debian|Debian"
cat "{folder}/answer"
"""


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return all files that were read."""
    seen: list[Path] = []
    real = files.sha256

    def sha256(path: Path) -> str:
        seen.append(path)
        return real(path)

    monkeypatch.setattr(files, "sha256", sha256)
    return seen


def _digest(path: Path) -> str:
    """Return the digest that another process would get."""
    digest_cache._digest.cache_clear()  # noqa: SLF001
    return digest_cache.sha256(path)


@pytest.mark.usefixtures("cache")
def test_a_file_is_read_again_only_after_a_change(tmp_path: Path, read: list[Path]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    assert [_digest(path) for _ in range(3)] == [hashlib.sha256(b"one").hexdigest()] * 3
    assert read == [path]
    before = path.stat()
    path.write_bytes(b"two")
    # The time of the last change to its bytes can be set, as tar and rsync do.
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert _digest(path) == hashlib.sha256(b"two").hexdigest()
    other = tmp_path / "other"
    other.write_bytes(b"six")
    other.replace(path)
    assert _digest(path) == hashlib.sha256(b"six").hexdigest()


@pytest.mark.usefixtures("cache")
def test_files_of_remembered_digests_are_not_read(tmp_path: Path, read: list[Path]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    digest_cache.remember(path.stat(), "0" * 64)
    assert _digest(path) == "0" * 64
    assert read == []


@pytest.mark.parametrize("hours", [24, 1000, -1])
@pytest.mark.usefixtures("cache")
def test_remembered_digests_are_believed_for_a_day(
    tmp_path: Path, read: list[Path], monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """Believe it also if the clock was wrong in between."""
    path = tmp_path / "file"
    path.write_bytes(b"one")
    monkeypatch.setattr(digest_cache, "identity", lambda _status: "as if nothing had touched it")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    assert _digest(path) == hashlib.sha256(b"one").hexdigest()
    path.write_bytes(b"two")
    monkeypatch.setattr(time, "time", lambda: now + 23 * 3600)
    assert _digest(path) == hashlib.sha256(b"one").hexdigest()
    monkeypatch.setattr(time, "time", lambda: now + hours * 3600)
    assert _digest(path) == hashlib.sha256(b"two").hexdigest()
    assert read == [path, path]


@pytest.mark.usefixtures("cache")
def test_without_a_time_it_is_not_known(tmp_path: Path, read: list[Path]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    known: object
    for known in ("0" * 64, ["0" * 64], ["0" * 64, "now"], [0, 0], {}, None):
        fact_cache.write("digests-2.json", {digest_cache.identity(path.stat()): known})
        assert _digest(path) == hashlib.sha256(b"one").hexdigest()
    assert len(read) == 6


@pytest.mark.usefixtures("cache")
def test_only_so_many_are_remembered(tmp_path: Path) -> None:
    for number in range(210):
        path = tmp_path / f"{number}"
        path.write_bytes(b"")
        digest_cache.remember(path.stat(), f"{number}")
    known = fact_cache.read("digests-2.json").values()
    assert [digest for digest, _ in known] == [f"{number}" for number in range(10, 210)]


@pytest.mark.parametrize("damage", [b"", b"[]", b"{", b"\xff", b'\n{"a": "b"}', b'{"a": "b"}'])
def test_a_damaged_memory_is_none(cache: Path, damage: bytes) -> None:
    file = cache / "some.json"
    file.write_bytes(damage)
    assert fact_cache.read(file.name) == {}
    fact_cache.write(file.name, {"a": "b"})
    assert fact_cache.read(file.name) == {"a": "b"}
    file.write_bytes(file.read_bytes().replace(b"b", b"c"))
    assert fact_cache.read(file.name) == {}


def test_facts_are_their_users_own(cache: Path) -> None:
    fact_cache.write("some.json", {"a": "b"})
    file = cache / "some.json"
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o620)
    assert fact_cache.read(file.name) == {}


def test_nothing_is_left_beside_it(cache: Path) -> None:
    before = {path.name for path in cache.iterdir()}
    fact_cache.write("some.json", {"a": "b"})
    assert {path.name for path in cache.iterdir()} == before | {"some.json"}


def test_no_cache_is_made_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    fact_cache.write("some.json", {"a": "b"})
    assert not (tmp_path / "cache").exists()


@pytest.mark.all
@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")
def test_digests_of_another_user_are_not_believed(cache: Path) -> None:
    fact_cache.write("some.json", {"a": "b"})
    os.chown(cache / "some.json", 65534, 65534)
    assert fact_cache.read("some.json") == {}


@pytest.fixture
def _apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an apt of our own."""
    program = tmp_path / "bin" / "apt-get"
    program.parent.mkdir()
    program.write_text(APT_GET.format(folder=tmp_path))
    program.chmod(0o755)
    (tmp_path / "answer").write_text(f"{MIRROR}/|Debian|Debian\n")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.mark.usefixtures("_apt")
def test_each_archive_has_its_own_mirror(tmp_path: Path) -> None:
    """Take the first of several; apt is asked once."""
    lines = (
        "http://other.example/debian|Debian|Debian",
        "http://second.example/security/|Debian-Security|Debian",
        "http://third.example/ubuntu|Ubuntu|Ubuntu",
    )
    with (tmp_path / "answer").open("a") as answer:
        answer.writelines(f"{line}\n" for line in lines)
    assert apt_mirror.mirror(apt_mirror.DEBIAN) == MIRROR
    assert apt_mirror.mirror(apt_mirror.SECURITY) == "http://security.example/debian"
    assert (tmp_path / "asked").read_text() == "asked\n"
