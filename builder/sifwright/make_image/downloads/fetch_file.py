"""Download one file into the cache, unless it is there: all of it, with its sha256, or nothing."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

from sifwright.errors import SifwrightError
from sifwright.host.network import http, pip_settings, sdist, upstream
from sifwright.make_image.cache.claims import claim
from sifwright.make_image.cache.store import CacheEntry, Store, silent
from sifwright.system import cache_folder

# The file of an entry. Its own name, which others chose, is in the manifest.
CONTENT = "content"


class NotFetched(Exception):
    """A file cannot be fetched, or is not what was asked for; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A file, told by its digest. `locate` finds its address, when that is needed."""

    name: str
    sha256: str
    locate: Callable[[], str] = field(compare=False)


def fetch(store: Store, file: File, settings: Mapping[str, str], stop: Event) -> CacheEntry:
    """Return the file in the cache with every byte checked; `settings` are pip's.

    Raises `NotFetched`, also where `stop` was set meanwhile.
    """
    try:
        while (entry := store.get(file.sha256)) is None:
            with claim(store, file.sha256, on_wait=silent) as ours:
                if ours:
                    return _downloaded(store, file, settings, stop)
    except (upstream.LookupFailedError, SifwrightError) as error:
        raise NotFetched(http.redact_url(str(error))) from error
    except OSError as error:
        raise NotFetched(http.redact_url(http.root_cause(error))) from error
    return entry


def _downloaded(store: Store, file: File, settings: Mapping[str, str], stop: Event) -> CacheEntry:
    with store.folder() as staging:
        sha256 = _download(_with_login(file.locate(), settings), staging / CONTENT, settings, stop)
        if sha256 != file.sha256:
            raise NotFetched(f"its sha256 is {sha256}, not {file.sha256}")
        return store.put(file.sha256, staging, {"name": file.name})[0]


def _download(address: str, path: Path, settings: Mapping[str, str], stop: Event) -> str:
    """Return the sha256 of the file's bytes, without the compression of the transfer."""
    if not address.startswith(("http://", "https://")):
        raise NotFetched("it is read where it is")
    digest = hashlib.sha256()
    trusted = sdist.is_trusted(address, pip_settings.environment(settings))
    way = http.HttpOptions(proxy=settings.get("proxy", ""), trusted=trusted)
    with (
        http.open_response(address, way=way, large=True) as answer,
        path.open("xb") as sink,
    ):
        if message := http.failure(answer):
            raise NotFetched(message)
        for piece in http.pieces(answer):
            if stop.is_set():
                raise NotFetched("the build ended")
            digest.update(piece)
            sink.write(piece)
    return digest.hexdigest()


def _with_login(address: str, settings: Mapping[str, str]) -> str:
    """Add the login of an index to any address on its server, as pip does."""
    parts = urlsplit(address)
    places = ("index-url", "extra-index-url", "find-links")
    for word in " ".join(settings.get(name, "") for name in places).split():
        login, _, host = urlsplit(word).netloc.rpartition("@")
        if login and host == parts.netloc:
            return parts._replace(netloc=f"{login}@{host}").geturl()
    return address


def look_store() -> Store:
    cache_folder.look(cache_folder.downloads())
    return Store(root=cache_folder.downloads(), noun="download")


def open_store(note: Callable[[str], None] = silent) -> Store:
    """Open the user's cache of downloads and make its folders; raises `MachineError`."""
    root = cache_folder.make(cache_folder.downloads())
    return Store(root=root, note=note, noun="download")
