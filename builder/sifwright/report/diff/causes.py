"""The likely cause why a build gave a file other bytes than before."""

import re
from collections.abc import Iterator

# Bytes of a header of Python's bytecode, of gzip's before the time, of a text that is shown.
_BYTECODE, _GZIP_TIME, _SHOWN = 16, 4, 60
_RUN = re.compile(rb"[\x20-\x7e]+")
_DATE = re.compile(
    rb"\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\b1[5-9]\d{8}\b"
    rb"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* +\d{1,2}\b"
)
_ARCHIVES = {
    b"!<arch>\n": "times or owners in an archive of ar",
    b"PK\3\4": "times or the order in a zip archive",
}
_PLACES = {
    rb"(?:.*/)?var/(?:log|cache)/.*": "a log or a cache",
    rb"(?:.*/)?(?:root/)?\.cache/.*": "a cache",
    rb"(?:usr/lib/sysimage|var/lib)/rpm/.*": "times of installation in RPM's database",
    rb"etc/ssh/ssh_host_.*|.*\.(?:key|pem)": "a key that was made at random",
    rb"etc/(?:machine-id|hostname|hosts|resolv\.conf)": "the building machine",
    rb"(?:.*/)?conda-meta/.*": "times in conda's notes",
    rb"(?:.*/)?\.git/.*": "times or the packing of git's database",
}


def likely_cause(path: bytes, old: bytes, new: bytes) -> str:
    """Return why two builds gave a file different contents, as far as these show it."""
    return next(_causes(path, old, new))


def _causes(path: bytes, old: bytes, new: bytes) -> Iterator[str]:
    if path.endswith(b".pyc"):
        same = old[_BYTECODE:] == new[_BYTECODE:]
        yield "bytecode: time or digest of the source" if same else "bytecode: what was compiled"
    first = _first_difference(old, new)
    if old[:2] == b"\x1f\x8b" and first in range(_GZIP_TIME, 2 * _GZIP_TIME):
        yield "time in the header of gzip"
    yield from (cause for magic, cause in _ARCHIVES.items() if old.startswith(magic))
    yield from (cause for pattern, cause in _PLACES.items() if re.fullmatch(pattern, path))
    yield from _texts(_run_at(old, first), _run_at(new, first))
    if sorted(old.splitlines()) == sorted(new.splitlines()):
        yield "the order of its lines"
    yield f"unknown; the first other byte is number {first}"


def _texts(old: bytes, new: bytes) -> Iterator[str]:
    shown = f"{_shorten_text(old)} -> {_shorten_text(new)}"
    if _DATE.search(old) and _DATE.search(new):
        yield f"date: {shown}"
    if b"/" in old and b"/" in new:
        yield f"path: {shown}"


def _first_difference(old: bytes, new: bytes) -> int:
    """Return the number of the first byte that differs, by halving."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _run_at(data: bytes, number: int) -> bytes:
    """Return the text around a byte, at most a few lines of it."""
    start = max(number - 4 * _SHOWN, 0)
    runs = _RUN.finditer(data, start, number + 4 * _SHOWN)
    return next((run[0] for run in runs if run.start() <= number <= run.end()), b"")


def _shorten_text(text: bytes) -> str:
    return repr(text[:_SHOWN].decode("ascii"))
