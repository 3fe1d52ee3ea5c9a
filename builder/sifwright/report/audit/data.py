"""The data of an audit: addresses on the network, or a folder or bundle that holds everything."""

import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from sifwright.errors import UsageError
from sifwright.host.network import http

# The folder of a bundle; its layout is in docs/how-to/audit.md.
_FOLDER = "audit"
PYPI = "pypi"
_FIX = "Name a folder, or a bundle as 'sifwright bundle' writes it, with a folder 'audit'."


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditData:
    """`folder` has all data, and then nothing is asked; `osv` are addresses of OSV dumps.

    `places` are the folders or files of the data that addresses have, once they were asked.
    """

    folder: Path | None = None
    osv: tuple[str, ...] = ()
    places: dict[str, str] = field(default_factory=dict)

    def below(self, name: str) -> str:
        """Return the address of a folder of the data, or nothing."""
        path = self.folder / name if self.folder else None
        return f"file://{path}" if path and path.is_dir() else ""

    def shorten_address(self, address: str) -> str:
        """Return an address for people: without a login, and in the data without its folder."""
        shown = http.redact_url(address).removeprefix(f"file://{self.folder}/")
        return shown.removeprefix("file://")

    def repositories(self) -> list[str]:
        folder = self.folder or Path()
        return [f"file://{path.parents[1]}" for path in folder.glob("rpm/*/repodata/repomd.xml")]


@contextmanager
def opened(data: str, osv: str) -> Iterator[AuditData]:
    """Yield the data of the options --data and --osv; raises `UsageError`."""
    named = AuditData(osv=tuple(_addresses(osv)))
    if not data:
        yield named
        return
    path = Path(data).absolute()
    if path.is_dir():
        yield _of_folder(path, named)
        return
    with tempfile.TemporaryDirectory(prefix="sifwright-") as name:
        _unpack(path, Path(name))
        yield _of_folder(Path(name), named)


def is_bundle(name: str) -> bool:
    """Tell whether a file is a bundle with data of an audit."""
    try:
        with tarfile.open(name, "r:") as archive:
            return any(member.name.startswith(f"{_FOLDER}/") for member in archive)
    except (tarfile.TarError, OSError, EOFError):
        return False


@contextmanager
def saved(folder: str, source: AuditData) -> Iterator[None]:
    """Write all data that is read inside into a new folder, which --data takes."""
    if not folder:
        yield
        return
    if source.folder:
        raise UsageError.of("--data has it already", where="--save", fix="Leave one of them out.")
    target = Path(folder).absolute()
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise UsageError.of("there is something", where=folder, fix="Name a new folder.")
    with http.kept_files() as kept:
        yield
    with tempfile.TemporaryDirectory(prefix=".sifwright-", dir=target.parent) as name:
        new = Path(name, "data")
        if PYPI in source.places.values():
            # Also if the index has none of the packages.
            (new / PYPI).mkdir(parents=True)
        for address, data in kept.items():
            if path := _choose_path(address, source.places):
                (new / path).parent.mkdir(parents=True, exist_ok=True)
                (new / path).write_bytes(data)
        new.mkdir(exist_ok=True)
        new.chmod(0o755)
        new.rename(target)


def _choose_path(address: str, places: Mapping[str, str]) -> str:
    """Return the path of a file in the data; nothing for an address that leads elsewhere."""
    for start, folder in places.items():
        rest = address.removeprefix(start).strip("/")
        if address.startswith(start) and ".." not in rest.split("/"):
            path = f"{folder}/{rest}".rstrip("/")
            return f"{path.removesuffix('.json')}.json" if folder == PYPI else path
    return ""


def _addresses(osv: str) -> Iterator[str]:
    if osv.startswith(("http://", "https://")):
        yield osv
    elif osv:
        path = Path(osv.removeprefix("file://")).absolute()
        files = sorted(path.glob("*.zip"))
        if path.is_dir() and not files:
            fix = "Name a file, an address, or a folder of zip files."
            raise UsageError.of("has no zip file", where=str(path), fix=fix)
        yield from (f"file://{file}" for file in files or [path])


def _of_folder(path: Path, named: AuditData) -> AuditData:
    folder = path / _FOLDER if (path / _FOLDER).is_dir() else path
    dumps = (f"file://{file}" for file in sorted(folder.glob("osv/*.zip")))
    return replace(named, folder=folder, osv=(*named.osv, *dumps))


def _unpack(path: Path, folder: Path) -> None:
    """Unpack the bundle's folder: files only, none of which leads elsewhere."""
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if name.startswith(f"{_FOLDER}/") and not member.isdir():
                    if not member.isreg() or ".." in Path(name).parts:
                        raise UsageError.of(f"holds {name[:80]!r}", where=str(path), fix=_FIX)
                    _write(archive, member, folder / name)
    except (tarfile.TarError, EOFError):
        raise UsageError.of(
            "is no bundle, which is a tar file", where=str(path), fix=_FIX
        ) from None
    except OSError as error:
        raise UsageError.of(error.strerror or str(error), where=str(path), fix=_FIX) from None
    if not (folder / _FOLDER).is_dir():
        raise UsageError.of("has no data for an audit", where=str(path), fix=_FIX)


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Write a regular file; `extract` takes a filter only as of Python 3.11.4."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = archive.extractfile(member)
    if content:
        with content, path.open("wb") as file:
            shutil.copyfileobj(content, file)
