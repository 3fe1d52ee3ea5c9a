"""Published vulnerabilities of Python packages, from a dump of OSV: a zip of JSON documents."""

import io
import json
import lzma
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from sifwright.errors import UsageError
from sifwright.host.network.http import read_file
from sifwright.images.contents.packages import Package
from sifwright.report.audit.findings import Finding

_MOST_BYTES = 16 << 20
_FIX = "Name a dump as OSV publishes it for an ecosystem: all.zip of PyPI."
# Errors of unpacking a damaged zip file.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError),
    *(NotImplementedError, RuntimeError, EOFError),
)
_PYPI = "PyPI"


def public(version: str) -> str:
    """Return a version as its index has it, without what a builder added behind a plus."""
    known = _version(version)
    return known.public if known else version


def findings(installed: Sequence[Package], dump: str) -> Iterator[Finding]:
    """Yield the vulnerabilities of these packages; raises `UsageError` for a dump that is none.

    `dump` is an address of a file or folder of this machine (file://), or of a server.
    """
    by_name: dict[str, list[Package]] = defaultdict(list)
    for package in installed:
        by_name[canonicalize_name(package.name)].append(package)
    is_of_python = False
    for document in _documents(dump):
        try:
            affected = [
                entry
                for entry in document.get("affected", ())
                if entry.get("package", {}).get("ecosystem") == _PYPI
            ]
            matches = list(_matches(document, affected, by_name))
        except (LookupError, TypeError, AttributeError) as error:
            message = f"{document.get('id')} is no OSV document: {error!r}"
            raise _refusal(dump, message) from None
        is_of_python = is_of_python or bool(affected)
        yield from (_finding(package, document, entry) for package, entry in matches)
    if not is_of_python:
        raise _refusal(dump, "has no vulnerability of Python packages (PyPI)")


def _matches(
    document: Mapping[str, Any],
    affected: Sequence[Mapping[str, Any]],
    by_name: Mapping[str, Sequence[Package]],
) -> Iterator[tuple[Package, Mapping[str, Any]]]:
    for entry in () if document.get("withdrawn") else affected:
        for package in by_name.get(canonicalize_name(entry["package"]["name"]), ()):
            if _is_affected(public(package.version), entry):
                yield package, entry


def _is_affected(version: str, affected: Mapping[str, Any]) -> bool:
    if version in affected.get("versions", ()):
        return True
    ranges = [item for item in affected.get("ranges", ()) if item.get("type") == "ECOSYSTEM"]
    known = _version(version)
    return known is not None and any(_lies_in(known, item["events"]) for item in ranges)


def _version(text: str) -> Version | None:
    """Return a version, or None: some of old releases follow no rules."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _lies_in(version: Version, events: Iterable[Mapping[str, str]]) -> bool:
    """Tell it as OSV's schema does: the last event at or below the version decides."""
    inside = False
    listed = ((_version(text), kind) for event in events for kind, text in event.items())
    for at, kind in sorted((at, kind) for at, kind in listed if at is not None):
        if kind == "introduced":
            inside = inside or version >= at
        elif (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            inside = False
    return inside


def _finding(package: Package, document: Mapping[str, Any], affected: Mapping[str, Any]) -> Finding:
    events = chain.from_iterable(item.get("events", ()) for item in affected.get("ranges", ()))
    fixes = {text: _version(text) for event in events if (text := event.get("fixed"))}
    now = _version(public(package.version))
    later = [fix for fix in fixes.values() if fix is not None and now is not None and fix > now]
    fixed = min(later, default="")
    names = [str(name) for name in document.get("aliases", ()) if str(name).startswith("CVE-")]
    summary = str(document.get("summary") or document.get("details", "")).split("\n")[0][:120]
    return Finding(
        rule="vulnerability",
        package=package.name,
        version=package.version,
        fixed=str(fixed),
        identity=str(document.get("id", "")),
        message=": ".join(filter(None, (" ".join(names), summary))),
    )


def _documents(dump: str) -> Iterator[Mapping[str, Any]]:
    data = read_file(dump)
    if data is None:
        raise _refusal(dump, "there is no such file")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist():
                if entry.filename.endswith(".json"):
                    yield _document(archive, entry, dump)
    except _DAMAGE as error:
        raise _refusal(dump, f"is no whole zip file: {error}") from None


def _document(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, dump: str) -> Mapping[str, Any]:
    if entry.file_size > _MOST_BYTES:
        raise _refusal(dump, f"{entry.filename[:80]!r} is longer than vulnerabilities are")
    try:
        document = json.loads(archive.read(entry))
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or "id" not in document:
        raise _refusal(dump, f"{entry.filename[:80]!r} is no OSV document")
    return document


def _refusal(dump: str, message: str) -> UsageError:
    return UsageError.of(message, where=dump.removeprefix("file://"), fix=_FIX)
