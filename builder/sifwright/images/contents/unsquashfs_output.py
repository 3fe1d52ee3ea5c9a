"""Read what `unsquashfs -pf` prints of a squashfs file: a line for each path, then all bytes.

The format is that of mksquashfs' pseudo files (README-4.5 of squashfs-tools): blanks, quotes and
backslashes of a name have a backslash before them. Line breaks have none, and in the target of a
symbolic link nothing has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sifwright.images.contents.listing import ListedPath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# After this line and one more come the bytes of all files, one after the other.
DATA = b"# START OF DATA - DO NOT MODIFY\n"
_NAME = rb"(?P<name>(?:[^ \\]|\\.)+)"
_FACTS = rb"(?P<mtime>\d+) (?P<mode>[0-7]+) (?P<uid>\d+) (?P<gid>\d+)"
# L is a hard link; x an extended attribute, which 4.6 and later print and nobody here compares.
_LINE = re.compile(
    _NAME
    + rb" (?:(?P<kind>[DRSCBI]) "
    + _FACTS
    + rb"|(?P<other>L(?= .)|x(?= [^ =]+=)))(?: (?P<rest>.*?))?\n",
    re.DOTALL,
)
_BLANK = re.compile(rb"(?<!\\) ")
# What a machine can hold of a list, and lines that were torn: each is read with those before it.
_MOST_LINES, _MOST_TORN = 2_000_000, 5_000
_KINDS = {b"D": "folder", b"R": "file", b"S": "symlink", b"C": "character device"}
_OTHERS = {b"B": "block device", b"I f": "fifo", b"I s": "socket"}


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A file's `size` bytes, from `start` behind the marker.

    Names of one file (hard links) are all in `paths`.
    """

    paths: tuple[bytes, ...]
    start: int
    size: int


def parse(lines: Iterable[bytes]) -> tuple[list[ListedPath], list[File]]:
    """Return the paths in front of the marker, and the files in the order of their bytes.

    Raises `ValueError` if this is not what unsquashfs prints.
    """
    nodes: dict[bytes, ListedPath] = {}
    files: dict[bytes, File] = {}
    for record in _records(lines):
        if record["other"] == b"L":
            _link(_plain(record["name"]), _plain(record["rest"]), nodes, files)
        elif record["kind"]:
            node = _node(record)
            nodes[node.path] = node
            if node.kind == "file":
                files[node.path] = _file(node, record["rest"])
    _check(list(files.values()))
    return list(nodes.values()), list(files.values())


def _link(
    path: bytes, target: bytes, nodes: dict[bytes, ListedPath], files: dict[bytes, File]
) -> None:
    """Add another name of an earlier file."""
    if target not in nodes:
        raise ValueError("has a list of files that contradicts itself")
    first = nodes[target]
    node = replace(first, links=first.links or len(nodes))
    nodes[target], nodes[path] = node, replace(node, path=path)
    if target in files:
        file = files[target]
        files[target] = replace(file, paths=(*file.paths, path))


def _records(lines: Iterable[bytes]) -> Iterator[re.Match[bytes]]:
    """Put lines together that a name or a target with line breaks has torn apart.

    A part of a name has no blank of its own. So only a target that goes on with a line without any
    is ambiguous: it counts as the beginning of the next name.
    """
    record, head, torn = b"", b"", 0
    for number, line in enumerate(lines):
        if number > _MOST_LINES or torn > _MOST_TORN:
            raise ValueError("has more paths, or line breaks in them, than can be compared")
        whole = head + line
        if _LINE.fullmatch(whole):
            if record:
                yield _match(record)
            record, head = whole, b""
            continue
        torn += 1
        if _BLANK.search(line):
            record, head = record + whole, b""
        else:
            head = whole
    if record or head:
        yield _match(record + head)


def _match(record: bytes) -> re.Match[bytes]:
    if match := _LINE.fullmatch(record):
        return match
    raise ValueError(f"has a list of files with {record[:40]!r}")


def _node(match: re.Match[bytes]) -> ListedPath:
    path = b"" if match["name"] == b"/" else _plain(match["name"])
    rest, code = match["rest"] or b"", match["kind"]
    if code in {b"C", b"B"}:
        major, minor = rest.split()
        if code == b"C" and int(major) == int(minor) == 0:
            return ListedPath.whiteout(path)
    return ListedPath(
        path=path,
        kind=_KINDS.get(code) or _OTHERS.get(code) or _OTHERS[code + b" " + rest],
        mode=int(match["mode"], 8),
        uid=int(match["uid"]),
        gid=int(match["gid"]),
        size=int(rest.split()[0]) if code == b"R" else 0,
        mtime=int(match["mtime"]),
        target=rest if code == b"S" else b"",
        device=(int(major), int(minor)) if code in {b"C", b"B"} else (0, 0),
    )


def _file(node: ListedPath, rest: bytes) -> File:
    return File(paths=(node.path,), start=int(rest.split()[1]), size=node.size)


def _check(files: Sequence[File]) -> None:
    """Raise `ValueError` unless the files follow one another: the output may be forged."""
    end = 0
    for file in files:
        if file.start != end:
            raise ValueError("has a list of files that contradicts itself")
        end += file.size


def _plain(name: bytes) -> bytes:
    return re.sub(rb"\\(.)", rb"\1", name, flags=re.DOTALL)
