"""The packages in an image: Debian's and Python's, with their files and licences."""

from __future__ import annotations

import csv
import posixpath
import re
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from email.message import Message

    from sifwright.images.contents.layer_stack import LayeredNode, LayerStack

Kind = Literal["debian", "python"]
_STATUS = b"var/lib/dpkg/status"
_INFO = "var/lib/dpkg/info"
_NAMES = re.compile(rb".*\.dist-info/METADATA|" + _STATUS, re.DOTALL)
_MORE = re.compile(
    rb".*\.dist-info/RECORD|var/lib/dpkg/info/[^/]*\.list|usr/share/doc/[^/]*/copyright", re.DOTALL
)
_SEE = "see copyright"
_UNKNOWN = "not stated"
# What a table has room for; some packages put the whole text there.
_SHORT = 60
_MOST_LICENCES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """An installed package; `files` are paths of the image, as far as they were asked for."""

    kind: Kind
    name: str
    version: str
    licence: str = ""
    files: tuple[bytes, ...] = ()


def installed(stack: LayerStack) -> list[Package]:
    """Return the packages of a SIF, with names and versions only."""
    wanted = sources(stack.tree, names_only=True)
    return find(stack.texts(wanted), stack.tree)


def sources(paths: Iterable[bytes], *, names_only: bool) -> list[bytes]:
    """Return the files that list packages and, unless `names_only`, files and licences."""
    return [
        path
        for path in paths
        if _NAMES.fullmatch(path) or (not names_only and _MORE.fullmatch(path))
    ]


def find(texts: Mapping[bytes, bytes], tree: Mapping[bytes, LayeredNode]) -> list[Package]:
    """Return the packages in these files (path -> content), sorted by name."""
    packages = [*_debian(texts, tree), *_python(texts)]
    return sorted(
        packages, key=lambda package: (package.kind, package.name.lower(), package.version)
    )


def _debian(texts: Mapping[bytes, bytes], tree: Mapping[bytes, LayeredNode]) -> Iterator[Package]:
    for stanza in texts.get(_STATUS, b"").split(b"\n\n"):
        facts = _headers(stanza)
        if facts["Package"] is None or "installed" not in str(facts["Status"]).split():
            continue
        name, arch = _one(facts, "Package"), _one(facts, "Architecture")
        yield Package(
            kind="debian",
            name=name,
            version=_one(facts, "Version"),
            licence=_debian_licence(name, texts, tree),
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
        if not path.endswith(b".dist-info/METADATA"):
            continue
        facts, folder = _headers(text), path.removesuffix(b"/METADATA")
        yield Package(
            kind="python",
            name=_one(facts, "Name"),
            version=_one(facts, "Version"),
            licence=_python_licence(facts),
            files=tuple(_recorded(folder, texts.get(folder + b"/RECORD", b""))),
        )


def _recorded(folder: bytes, record: bytes) -> Iterator[bytes]:
    """Yield the files of a RECORD, whose paths start where the distribution's folder is."""
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
    licence = _one(facts, "License")
    short = licence if len(licence) <= _SHORT and "\n" not in licence else ""
    parts = [str(line).split(" :: ") for line in facts.get_all("Classifier", ())]
    named = [part[-1] for part in parts if part[0] == "License" and len(part) > 1]
    return _one(facts, "License-Expression") or short or ", ".join(named) or _UNKNOWN


def _headers(text: bytes) -> Message:
    return BytesHeaderParser().parsebytes(text)


def _one(facts: Message, name: str) -> str:
    return str(facts[name] or "").strip()
