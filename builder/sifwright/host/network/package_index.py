"""Versions of Python packages that their index has withdrawn (PEP 592, PEP 691)."""

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)

from sifwright.host.network import http, pip_settings, sdist
from sifwright.host.network.http import read_file, refusal

_JSON = {"Accept": "application/vnd.pypi.simple.v1+json"}
_AT_ONCE = 8


def address() -> str:
    """Return the first index of pip's settings; nothing where pip is to ask none."""
    settings = pip_settings.settings()
    if settings.get("no-index", "").lower() in sdist.TRUE:
        return ""
    return (settings.get("index-url") or sdist.default_index()).rstrip("/")


def yanked(names: Iterable[str], index: str) -> dict[str, dict[str, str]]:
    """Return the withdrawn versions of packages with the reasons: name -> version -> reason.

    `index` is an address, or a file:// folder with NAME.json. Raises `MachineError`.
    """
    wanted = sorted({canonicalize_name(name) for name in names})
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(lambda name: dict(_yanked(name, index)), wanted)
        return dict(zip(wanted, answers, strict=True))


def _yanked(name: str, index: str) -> Iterator[tuple[str, str]]:
    reasons: dict[str, list[str | None]] = {}
    for file in _files(name, index):
        version, reason = _version(str(file.get("filename", ""))), file.get("yanked", False)
        text = None if reason is False else (reason if isinstance(reason, str) else "")
        reasons.setdefault(version, []).append(text)
    for version, texts in reasons.items():
        if version and None not in texts:
            yield version, next(filter(None, texts), "")


def _files(name: str, index: str) -> list[Mapping[str, Any]]:
    local = index.startswith("file://")
    url = f"{index}/{name}.json" if local else f"{index}/{name}/"
    settings = pip_settings.settings()
    trusted = not local and sdist.is_trusted(url, pip_settings.environment(settings))
    way = http.HttpOptions(proxy=settings.get("proxy", ""), trusted=trusted)
    data = read_file(url, _JSON, way)
    if data is None:
        # It is of another index, or has no published releases.
        return []
    try:
        return [file for file in json.loads(data)["files"] if isinstance(file, dict)]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise refusal(url, "answers with no JSON of a package index (PEP 691)") from None


def _version(filename: str) -> str:
    with suppress(InvalidWheelFilename, InvalidSdistFilename):
        parse = parse_wheel_filename if filename.endswith(".whl") else parse_sdist_filename
        return str(parse(filename)[1])
    return ""
