"""Look wheels up in this machine's indexes, by name and version."""

import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from threading import Event
from urllib.parse import unquote, urlsplit

from packaging.pylock import PackageWheel, Pylock
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from sifwright.host.network import http, pip_settings
from sifwright.make_image.downloads import resolve_wheels
from sifwright.make_image.downloads.resolve_wheels import ResolveRequest
from sifwright.make_image.lock.installed import PythonKey
from sifwright.make_image.lock_format.lock_file import Wheel
from sifwright.system import cache_folder, files
from sifwright.system.tempdirs import workspace

# The newest that uv 0.8 knows: an image may have any.
_GLIBC = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """A wheel of an index or a folder at `address`; `url` is that of an index without a login."""

    file: str
    url: str
    address: str
    sha256: str

    def locked(self, name: str, version: str) -> Wheel:
        return Wheel(name=name, version=version, file=self.file, sha256=self.sha256, url=self.url)


@dataclass(frozen=True, kw_only=True, slots=True)
class WheelIndex:
    """This machine's indexes, and then the layers' own, for a Python and a processor."""

    python: str
    processor: str
    indexes: tuple[str, ...]

    def offers(self, keys: Iterable[PythonKey]) -> dict[PythonKey, list[Offer]]:
        """Return the wheels of these packages; nothing for packages without any."""
        offers: dict[PythonKey, list[Offer]] = {}
        of_names = (list(versions) for _, versions in groupby(sorted(set(keys)), itemgetter(0)))
        # uv takes one version of each package at a time.
        for versions in zip_longest(*of_names):
            offers |= self._halved([key for key in versions if key])
        return offers

    def _halved(self, keys: Sequence[PythonKey]) -> dict[PythonKey, list[Offer]]:
        """Ask for all; where uv has no answer, for each half."""
        lock = self.resolve([f"{name}=={version}" for name, version in keys], deps=False)
        if lock is not None:
            return {
                (item.name, str(item.version)): [offer(wheel) for wheel in item.wheels or ()]
                for item in Pylock.from_dict(tomllib.loads(lock)).packages
            }
        if len(keys) <= 1:
            return {}
        middle = len(keys) // 2
        return self._halved(keys[:middle]) | self._halved(keys[middle:])

    def resolve(self, requirements: Sequence[str], *, deps: bool) -> str | None:
        """Return uv's lock of these requirements, or None."""
        question = ResolveRequest(
            requirements=tuple(requirements),
            present=(),
            indexes=self.indexes,
            python=self.python,
            processor=self.processor,
            glibc=_GLIBC,
            deps=deps,
        )
        with workspace(cache_folder.make(cache_folder.downloads())) as folder:
            answer = resolve_wheels.ask(question, pip_settings.settings(), folder, Event())
        return answer.lock if answer else None


def offer(wheel: PackageWheel) -> Offer:
    """Return a wheel as uv names it; one in a folder is read for its digest if that lacks."""
    url = wheel.url or ""
    local = url.startswith("file:") or not url
    path = Path(unquote(urlsplit(url).path) if url else wheel.path or "") if local else None
    sha256 = wheel.hashes.get("sha256", "")
    if path is not None and not sha256 and path.is_file():
        sha256 = files.sha256(path)
    return Offer(
        file=wheel.filename,
        url="" if local else http.redact_url(url).partition("#")[0],
        address=url if path is None else f"file://{path}",
        sha256=sha256,
    )


def fitting(offers: Iterable[Offer], tags: Collection[str]) -> Offer | None:
    """Return the wheel with the tags that an installed package names."""
    return next((item for item in offers if item.sha256 and _tags(item.file) & set(tags)), None)


def _tags(file: str) -> set[str]:
    try:
        return {str(tag) for tag in parse_wheel_filename(file)[3]}
    except InvalidWheelFilename:
        return set()
