"""The packages in an image: Debian's, Python's and RPM's, with their files and licences."""

import csv
import posixpath
import re
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesHeaderParser
from itertools import chain
from typing import Literal

from sifwright.images.contents.image_tree import BadImage
from sifwright.images.contents.layer_stack import LayeredNode, LayerStack

Kind = Literal["debian", "python", "rpm"]
_STATUS = b"var/lib/dpkg/status"
_INFO = "var/lib/dpkg/info"
_RPM = ("var/lib/rpm/rpmdb.sqlite", "usr/lib/sysimage/rpm/rpmdb.sqlite")
# Not what a package has of others in itself, which no program installs or names.
_METADATA = re.compile(
    rb"((?:.*/)?(?:site|dist)-packages/[^/]+\.(?:dist|egg)-info)(?:/METADATA|/PKG-INFO)?", re.DOTALL
)
_NAMES = re.compile(_METADATA.pattern + b"|" + _STATUS, re.DOTALL)
_MORE = re.compile(
    rb".*\.dist-info/RECORD|var/lib/dpkg/info/[^/]*\.list|usr/share/doc/[^/]*/copyright", re.DOTALL
)
_SEE = "see copyright"
_UNKNOWN = "not stated"
# Longest licence in a table; some packages put the whole text there.
_SHORT = 60
_MOST_LICENCES = 3
# Numbers of rpm's tags (rpmtag.h), and of the type of a number of 32 bits.
_TAGS = {1000: "name", 1001: "version", 1002: "release", 1003: "epoch"}
_TAGS |= {1014: "licence", 1022: "architecture"}
_INT32 = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """An installed package; `files` are paths of the image, as far as they were asked for.

    `folder` is that of a Python package's metadata, `tags` are those of the wheel that it came in.
    `texts` are files with its licence.
    """

    kind: Kind
    name: str
    version: str
    architecture: str = ""
    licence: str = ""
    files: tuple[bytes, ...] = ()
    folder: str = ""
    texts: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()


def installed(stack: LayerStack) -> list[Package]:
    """Return the packages of a SIF, with names and versions only."""
    return find(stack.texts(sources(stack.tree, names_only=True)), stack.tree)


def sources(paths: Iterable[bytes], *, names_only: bool) -> list[bytes]:
    """Return the files that list packages and, unless `names_only`, files and licences."""
    return [
        path
        for path in paths
        if _NAMES.fullmatch(path) or (not names_only and _MORE.fullmatch(path))
    ]


def find(texts: Mapping[bytes, bytes], tree: Mapping[bytes, LayeredNode]) -> list[Package]:
    """Return the packages in these files (path -> content), sorted by name."""
    databases = (texts[name.encode()] for name in _RPM if name.encode() in texts)
    packages = [*_debian(texts, tree), *_python(texts), *chain.from_iterable(map(_rpm, databases))]
    return sorted(
        packages, key=lambda package: (package.kind, package.name.lower(), package.version)
    )


def _debian(texts: Mapping[bytes, bytes], tree: Mapping[bytes, LayeredNode]) -> Iterator[Package]:
    for stanza in texts.get(_STATUS, b"").split(b"\n\n"):
        facts = _headers(stanza)
        if facts["Package"] is None or "installed" not in str(facts["Status"]).split():
            continue
        name, arch = _read_field(facts, "Package"), _read_field(facts, "Architecture")
        yield Package(
            kind="debian",
            name=name,
            version=_read_field(facts, "Version"),
            architecture=arch,
            licence=_debian_licence(name, texts, tree),
            texts=(f"/usr/share/doc/{name}/copyright",),
            files=tuple(_listed(name, arch, texts, tree)),
        )


def _listed(
    name: str, arch: str, texts: Mapping[bytes, bytes], tree: Mapping[bytes, LayeredNode]
) -> Iterator[bytes]:
    """Yield the files of dpkg's list; those of /bin are in /usr/bin if /bin is a link to it."""
    for stem in (name, f"{name}:{arch}"):
        for line in texts.get(f"{_INFO}/{stem}.list".encode(), b"").splitlines():
            top, slash, rest = line.strip(b"/").partition(b"/")
            placed = tree.get(top)
            if slash and placed is not None and placed.node.kind == "symlink":
                top = placed.node.target.strip(b"/")
            yield top + slash + rest


def _debian_licence(
    name: str, texts: Mapping[bytes, bytes], tree: Mapping[bytes, LayeredNode]
) -> str:
    """Return the first licences of a copyright file that programs can read (DEP-5)."""
    folder = f"usr/share/doc/{name}".encode()
    placed = tree.get(folder)
    if placed is not None and placed.node.kind == "symlink":
        # A package of the same source has it.
        folder = posixpath.normpath(posixpath.join(b"usr/share/doc", placed.node.target))
    text = texts.get(folder + b"/copyright", b"")
    if not text.startswith(b"Format:"):
        return _SEE
    lines = re.findall(rb"^License:[ \t]*(\S.*)$", text, re.MULTILINE)
    names = dict.fromkeys(line.decode(errors="replace").strip() for line in lines)
    more = ", …" if len(names) > _MOST_LICENCES else ""
    return ", ".join(list(names)[:_MOST_LICENCES]) + more or _SEE


def _python(texts: Mapping[bytes, bytes]) -> Iterator[Package]:
    for path, text in texts.items():
        match = _METADATA.fullmatch(path)
        # A folder of metadata without its file is a rest.
        if match is None or not text or _read_field(facts := _headers(text), "Name") == "":
            continue
        folder = match[1]
        yield Package(
            kind="python",
            name=_read_field(facts, "Name"),
            version=_read_field(facts, "Version"),
            licence=_python_licence(facts),
            files=tuple(_recorded(folder, texts.get(folder + b"/RECORD", b""))),
            folder=_format_path(folder),
            texts=tuple(_format_path(name) for name in sorted(texts) if _is_licence(name, folder)),
            tags=frozenset(_headers(texts.get(folder + b"/WHEEL", b"")).get_all("Tag", ())),
        )


def _is_licence(path: bytes, folder: bytes) -> bool:
    return path.startswith(folder + b"/") and not path.endswith(
        (b"/METADATA", b"/RECORD", b"/WHEEL")
    )


def _format_path(path: bytes) -> str:
    return f"/{path.decode(errors='backslashreplace')}"


def _rpm(database: bytes) -> Iterator[Package]:
    for header in _rpm_headers(database):
        epoch = f"{header['epoch']}:" if header.get("epoch") else ""
        yield Package(
            kind="rpm",
            name=header["name"],
            version=f"{epoch}{header['version']}-{header['release']}",
            architecture=header.get("architecture", ""),
            licence=header.get("licence", "") or _UNKNOWN,
        )


def _recorded(folder: bytes, record: bytes) -> Iterator[bytes]:
    """Yield the files of a RECORD; their paths start where the distribution's folder is."""
    parent = posixpath.dirname(folder)
    lines = record.decode("utf-8", "surrogateescape").splitlines()
    try:
        for row in csv.reader(lines):
            if row:
                name = row[0].encode("utf-8", "surrogateescape")
                yield posixpath.normpath(posixpath.join(parent, name)).lstrip(b"/")
    except csv.Error:
        return


def _python_licence(facts: Message) -> str:
    """Return License-Expression (PEP 639), else a short License, else that of the classifiers."""
    licence = _read_field(facts, "License")
    short = licence if len(licence) <= _SHORT and "\n" not in licence else ""
    parts = [str(line).split(" :: ") for line in facts.get_all("Classifier", ())]
    named = [part[-1] for part in parts if part[0] == "License" and len(part) > 1]
    return _read_field(facts, "License-Expression") or short or ", ".join(named) or _UNKNOWN


def _headers(text: bytes) -> Message:
    return BytesHeaderParser().parsebytes(text)


def _read_field(facts: Message, name: str) -> str:
    return str(facts[name] or "").strip()


def _rpm_headers(database: bytes) -> Iterator[dict[str, str]]:
    """Yield the tags of each package. Raises `BadImage` for a damaged database."""
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            # A log beside the file belongs to it: alone, the file is whole.
            connection.deserialize(database[:18] + b"\1\1" + database[20:])
            for (blob,) in connection.execute("SELECT blob FROM Packages ORDER BY hnum"):
                if (header := _rpm_header(blob)).get("name", "gpg-pubkey") != "gpg-pubkey":
                    yield header
    except (sqlite3.Error, struct.error, ValueError, OverflowError) as error:
        raise BadImage(f"its rpm database cannot be read: {error}") from error


def _rpm_header(blob: bytes) -> dict[str, str]:
    count, _ = struct.unpack_from(">2I", blob)
    data, tags = 8 + 16 * count, dict[str, str]()
    for tag, kind, offset, _ in struct.iter_unpack(">4I", blob[8:data]):
        if tag not in _TAGS:
            continue
        start = data + offset
        if kind == _INT32:
            tags[_TAGS[tag]] = str(struct.unpack_from(">I", blob, start)[0])
        else:
            tags[_TAGS[tag]] = blob[start : blob.index(b"\0", start)].decode(errors="replace")
    return tags
