"""Security updates that repositories of RPM packages list (repodata/updateinfo.xml)."""

from __future__ import annotations

import gzip
import lzma
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.host.network.http import read_file, refusal

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_UNPACK: Mapping[str, Callable[[bytes], bytes]] = {
    "gz": gzip.decompress,
    "xz": lzma.decompress,
    "zst": zstd.decompress,
}
_REPO = "{http://linux.duke.edu/metadata/repo}"


class NoUpdatesError(Exception):
    """A repository that lists no updates, as some do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Advisory:
    """A package that a security update brings; `version` is [EPOCH:]VERSION-RELEASE."""

    identity: str
    package: str
    version: str


def advisories(address: str) -> list[Advisory]:
    """Return the security updates of a repository; raise `NoUpdatesError`, `MachineError`."""
    data = read_file(f"{address.rstrip('/')}/repodata/repomd.xml")
    if data is None:
        raise refusal(address, "is no repository of RPM packages: there is no repodata/repomd.xml")
    for entry in _parsed(data, address).iter(f"{_REPO}data"):
        location = entry.find(f"{_REPO}location")
        if entry.get("type") == "updateinfo" and location is not None:
            path = location.get("href", "")
            packed = read_file(f"{address.rstrip('/')}/{path}")
            return list(_listed(_parsed(_unpacked(packed or b"", path, address), address)))
    raise NoUpdatesError


def _listed(root: Element) -> Iterator[Advisory]:
    for update in root.iterfind(".//update[@type='security']"):
        for package in update.iter("package"):
            epoch = package.get("epoch", "0")
            version = f"{package.get('version')}-{package.get('release')}"
            yield Advisory(
                identity=update.findtext("id", ""),
                package=package.get("name", ""),
                version=version if epoch in {"", "0"} else f"{epoch}:{version}",
            )


def _unpacked(data: bytes, path: str, address: str) -> bytes:
    try:
        return _UNPACK.get(path.rpartition(".")[2], bytes)(data)
    except (OSError, EOFError, ValueError, lzma.LZMAError, zstd.ZstdError) as error:
        raise refusal(address, f"{path} is damaged: {error}") from None


def _parsed(data: bytes, address: str) -> Element:
    from xml.etree.ElementTree import ParseError  # noqa: PLC0415

    from defusedxml import DefusedXmlException, ElementTree  # noqa: PLC0415

    try:
        root: Element = ElementTree.fromstring(data)
    except (ParseError, DefusedXmlException) as error:
        raise refusal(address, f"its metadata is no XML of a repository: {error}") from None
    return root
