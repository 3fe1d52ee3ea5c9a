"""A repository of Debian packages in a folder: what debootstrap and apt install from."""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from email.utils import formatdate
from pathlib import Path
from typing import IO

from sifwright.catalog.processors import debian_architecture
from sifwright.errors import BuildError
from sifwright.images.contents.image_tree import BadImage
from sifwright.images.oci.streams import UnpackedStream
from sifwright.make_image.lock_format.lock_file import Archive, Deb

_MAGIC, _HEADER = b"!<arch>\n", 60
_MOST_BYTES = 16 << 20


def write(
    folder: Path, debs: Sequence[Deb], archives: Sequence[Archive], processor: str, epoch: int
) -> None:
    """Write indexes of the packages in `pool` of this folder.

    The first suite has them all: debootstrap reads that only. The other suites and components are
    there, and empty. Each has the date that the lock has of it, for the record of the image.
    """
    arch = debian_architecture(processor)
    # debootstrap reads no stanza without an empty line behind it.
    full = "".join(f"{stanza}\n" for stanza in _stanzas(folder, debs))
    first = next(iter(archives)).suite if archives else ""
    for suite in dict.fromkeys(archive.suite for archive in archives):
        names = {
            name: None
            for archive in archives
            if archive.suite == suite
            for name in ("main", *archive.components.split())
        }
        contents = {name: full if (suite, name) == (first, "main") else "" for name in names}
        dates = [archive.date for archive in archives if archive.suite == suite and archive.date]
        time = datetime.fromisoformat(dates[0]).timestamp() if dates else epoch
        _write_suite(folder / "dists" / suite, suite, contents, arch, time)


def _stanzas(folder: Path, debs: Iterable[Deb]) -> Iterator[str]:
    """Yield the control of each package with what apt compares.

    The archive decides which packages are required, not the package itself.
    """
    for deb in sorted(debs, key=lambda deb: (deb.name, deb.architecture)):
        lines = control(folder / "pool" / deb.file).strip("\n").split("\n")
        own = "".join(f"{line}\n" for line in lines if not line.startswith("Priority:"))
        priority = f"Priority: {deb.priority}\n" if deb.priority else ""
        location = f"Filename: pool/{deb.file}\nSize: {deb.size}\nSHA256: {deb.sha256}\n"
        yield own + priority + location


def _write_suite(
    folder: Path, suite: str, contents: Mapping[str, str], arch: str, time: float
) -> None:
    sums = []
    for component, text in contents.items():
        name = f"{component}/binary-{arch}/Packages"
        (folder / name).parent.mkdir(parents=True)
        plain = text.encode()
        for suffix, data in (("", plain), (".gz", gzip.compress(plain, mtime=0))):
            (folder / f"{name}{suffix}").write_bytes(data)
            sums.append(f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}{suffix}\n")
    head = {
        "Origin": "sifwright",
        "Label": "sifwright",
        "Suite": suite,
        "Codename": suite,
        "Date": formatdate(time, usegmt=True).replace("GMT", "UTC"),
        "Architectures": arch,
        "Components": " ".join(contents),
    }
    lines = "".join(f"{name}: {value}\n" for name, value in head.items())
    (folder / "Release").write_text(f"{lines}SHA256:\n{''.join(sums)}", encoding="utf-8")


def control(path: Path) -> str:
    """Return the control file of a package; raises `BuildError` for a file that is none."""
    try:
        with path.open("rb") as file:
            return _control(file)
    except (OSError, ValueError, EOFError, tarfile.TarError, BadImage) as error:
        raise BuildError.of(f"is no Debian package: {error}", where=str(path)) from None


def _control(file: IO[bytes]) -> str:
    """Read ar(5), which has a packed tar with the control file."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin as one")
    while header := file.read(_HEADER):
        name, size = header[:16].decode().rstrip(" /"), int(header[48:58])
        if size > _MOST_BYTES:
            break
        data = file.read(size + size % 2)[:size]
        if name.startswith("control.tar"):
            return _of_tar(UnpackedStream(io.BytesIO(data)).read(_MOST_BYTES))
    raise ValueError("it has no control file")


def _of_tar(data: bytes) -> str:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            if member.name.removeprefix("./") == "control" and member.isfile():
                content = archive.extractfile(member)
                return content.read().decode() if content else ""
    raise ValueError("it has no control file")
