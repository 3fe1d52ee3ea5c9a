"""R4, a disk that fails (EIO): the file is named, what was there stays, nothing wrong is served."""

from __future__ import annotations

import builtins
import errno
import hashlib
import io
import os
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.catalog.model import LayerFile
from sifwright.cli import main
from sifwright.errors import BuildError, MachineError
from sifwright.host.network import upstream
from sifwright.images.contents import listing
from sifwright.images.sif import write_sif as writing
from sifwright.images.sif.sif_file import SifError
from sifwright.images.sif.write_sif import Contents, Partition, PartitionError
from sifwright.make_image.assemble_sif import assemble
from sifwright.make_image.cache import manifest
from sifwright.make_image.deliver.flatten_sif import flatten_sif
from sifwright.make_image.downloads.fetch_file import File, NotFetched, fetch
from sifwright.make_image.pack_layers.pack import PackOptions
from sifwright.make_image.resolve_request import first_use
from sifwright.system import files
from tests.system.apptainer.toys import make_toy
from tests.unit.sifs import squashfs_of
from tests.unit.stores import LISTING, PACKED, add, is_right, key_of, leftovers

if TYPE_CHECKING:
    from collections.abc import Callable

    from sifwright.make_image.cache.store import Store

    Break = Callable[[str, Path], None]

CAUSE = "Input/output error"
KEY = key_of("a step")


def _error() -> OSError:
    """Return the error of a call with an open file: it has no name."""
    return OSError(errno.EIO, os.strerror(errno.EIO))


class Failing(io.FileIO):
    """A file that can be opened and not read."""

    def readinto(self, _buffer: object) -> int:
        raise _error()

    def readall(self) -> bytes:
        raise _error()


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Break:
    """Let a system call fail for a path: one of `os`, or `read` of what Python opens."""
    return lambda call, path: (
        _break_reading(monkeypatch, path) if call == "read" else _break(monkeypatch, call, path)
    )


def _break(monkeypatch: pytest.MonkeyPatch, call: str, path: Path) -> None:
    real = getattr(os, call)

    def failing(path_or_fd: int | Path, *rest: Any, **named: Any) -> Any:
        """Let a call fail for a file, which may still be missing; renaming gives names."""
        at = str(
            Path(f"/proc/self/fd/{path_or_fd}").readlink()
            if isinstance(path_or_fd, int)
            else path_or_fd
        )
        if call == "close" and at == str(path):
            real(path_or_fd)
        if at == str(path):
            raise _error()
        return real(path_or_fd, *rest, **named)

    monkeypatch.setattr(os, call, failing)


def _break_reading(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    real = io.open

    def opened(file: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
        if str(file) != str(path) or not set(mode) <= set("rbt"):
            return real(file, mode, *rest, **named)
        buffered = io.BufferedReader(Failing(path, "r"))
        return buffered if "b" in mode else io.TextIOWrapper(buffered)

    for module in (io, builtins):
        monkeypatch.setattr(module, "open", opened)


# ---- the cache --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [PACKED, LISTING, manifest.NAME])
def test_a_result_that_cannot_be_read_is_not_served(
    store: Store, notes: list[str], broken: Break, name: str
) -> None:
    other = add(store, key_of("another"))
    broken("read", add(store, KEY).file(name))
    assert [(damaged.key, damaged.reason) for damaged in store.verify()] == [
        (KEY, f"{name}: {CAUSE}")
    ]
    assert store.get(KEY) is None
    assert notes == [f"cached step {KEY[:12]} was dropped: {name}: {CAUSE}"]
    assert store.get(other.key) == other


@pytest.mark.parametrize("call", ["fsync", "fchmod", "read", "rename"])
def test_a_failed_store_leaves_no_entry(store: Store, broken: Break, call: str) -> None:
    other = add(store, key_of("another"))
    with store.folder() as folder:
        (folder / PACKED).write_bytes(b"some")
        broken(call, folder if call == "rename" else folder / PACKED)
        with pytest.raises(MachineError, match=f"step cache cannot be used: {CAUSE}") as caught:
            store.put(KEY, folder, {})
    assert str(store.root) in str(caught.value)
    assert store.all_keys() == [other.key]
    assert leftovers(store.root) == []
    result = store.get(other.key)
    assert result is not None
    assert is_right(result)


def test_a_download_that_cannot_be_read_is_fetched_anew(
    store: Store, notes: list[str], broken: Break
) -> None:
    broken("read", add(store, KEY).file(PACKED))

    def locate() -> str:
        raise upstream.LookupFailedError("asked for its address")

    with pytest.raises(NotFetched, match="asked for its address"):
        fetch(store, File(name="x.whl", sha256=KEY, locate=locate), {}, Event())
    assert CAUSE in notes[0]


def test_a_listing_that_cannot_be_read_is_named(tmp_path: Path, broken: Break) -> None:
    path = tmp_path / "files.json.gz"
    path.write_bytes(b"")
    broken("read", path)
    with pytest.raises(BuildError, match=f"{path}: .*{CAUSE}"):
        listing.blocks(path)


# ---- a SIF --------------------------------------------------------------------------------------


def part(path: Path, text: bytes) -> Partition:
    """Make a squashfs with one file."""
    file = LayerFile(path=f"/{path.name}/text", data=text, executable=False)
    path.write_bytes(data := squashfs_of(file))
    digest = hashlib.sha256(data).hexdigest()
    return Partition(path=path, name=path.name, is_system=path.name == "base", sha256=digest)


@pytest.fixture
def contents(tmp_path: Path) -> Contents[Partition]:
    parts = [part(tmp_path / name, name.encode()) for name in ("base", "layer")]
    return Contents(partitions=parts, definition=b"Bootstrap: x\n", metadata=b"{}", arch="amd64")


@pytest.mark.parametrize("call", ["pwrite", "fsync", "close"])
def test_a_sif_that_cannot_be_written_is_not_there(
    contents: Contents[Partition], tmp_path: Path, broken: Break, call: str
) -> None:
    broken(call, tmp_path / "x.sif")
    with pytest.raises(BuildError, match=f"{tmp_path}/x.sif: cannot be written: {CAUSE}"):
        writing.write(tmp_path / "x.sif", contents)
    assert not (tmp_path / "x.sif").exists()


def test_so_is_one_that_is_joined(
    contents: Contents[Partition], tmp_path: Path, broken: Break
) -> None:
    broken("pread", tmp_path / "layer")
    how = PackOptions(compression="zstd", log=tmp_path / "log")
    with pytest.raises(PartitionError, match=f"{tmp_path}/layer: cannot be read: {CAUSE}"):
        assemble._flat(contents.partitions, tmp_path / "flat", how)  # noqa: SLF001


@pytest.mark.parametrize("call", ["pread", "preadv"])
def test_a_sif_that_cannot_be_read_is_not_flattened(
    contents: Contents[Partition],
    tmp_path: Path,
    broken: Break,
    capsys: pytest.CaptureFixture[str],
    call: str,
) -> None:
    writing.write(tmp_path / "x.sif", contents)
    flatten_sif(tmp_path / "x.sif", tmp_path / "flat.sif", "")
    broken(call, tmp_path / "x.sif")
    command = ["flatten", str(tmp_path / "x.sif"), str(tmp_path / "new.sif")]
    assert main.main(command) == SifError.exit_code
    assert f"{tmp_path}/x.sif: " in (message := capsys.readouterr().err)
    assert CAUSE in message
    assert not (tmp_path / "new.sif").exists()
    assert not list(tmp_path.glob(".*"))


# ---- what is put in place ------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_the_old_file_stays(tmp_path: Path, broken: Break, call: str) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old")
    new.write_text("new")
    broken(call, new)
    with pytest.raises(OSError, match=CAUSE) as caught:
        files.publish(new, old)
    assert call == "replace" or caught.value.filename == str(old)
    assert old.read_text() == "old"


def test_a_folder_that_cannot_be_synced_is_named(tmp_path: Path, broken: Break) -> None:
    broken("fsync", tmp_path)
    with pytest.raises(OSError, match=f"{CAUSE}: '{tmp_path}'"):
        files.sync_folder(tmp_path)


def test_a_record_that_cannot_be_read_is_named(tmp_path: Path, broken: Break) -> None:
    """Refuse to build, or the record would not be enforced."""
    (tmp_path / first_use.FILE).write_text("{}")
    broken("read", tmp_path / first_use.FILE)
    with pytest.raises(BuildError, match=f"{first_use.FILE}: .* cannot be read: {CAUSE}"):
        first_use.read_first_use(tmp_path)


def test_a_record_of_brackets_is_named(tmp_path: Path) -> None:
    (tmp_path / first_use.FILE).write_text("[" * 200_000)
    with pytest.raises(BuildError, match=f"{first_use.FILE}: .* cannot be read"):
        first_use.read_first_use(tmp_path)


# ---- what a build starts from --------------------------------------------------------------------


def test_a_base_that_cannot_be_read_is_named(
    tmp_path: Path, broken: Break, capsys: pytest.CaptureFixture[str]
) -> None:
    (base := tmp_path / "base.sif").write_bytes(b"some")
    toy = make_toy(tmp_path / "project", base)
    toy.layer("first", "true\n")
    broken("read", base)
    assert main.main(toy.command()) == MachineError.exit_code
    assert f"sifwright: {base}: {CAUSE}\n" in capsys.readouterr().err
    assert not toy.output.exists()
