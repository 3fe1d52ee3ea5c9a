"""The files of an image that are read for its facts, and the part of each that is kept."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sifwright.system.files import sha256_of_blocks

_PIECE = 1 << 18
# More than any match has, so that none is lost between two pieces.
_OVERLAP = 512
_TEXT_BYTES = 1 << 20
# Limit of a database of packages: dpkg's has less than 10 MB, rpm's has some 40.
_DATABASE_BYTES = 64 << 20
# Open MPI and MPICH print their version by a format, so format and version stand apart.
MPI_LIBRARY = (rb"Open MPI v|MPICH Version:", rb"\0v?\d{1,9}\.\d{1,9}\.\d{1,9}[a-z0-9]{0,99}\0")
_LIBC = (rb"GNU C Library (?:(?!GNU C )[^\n\0]){0,200}? version \d{1,9}\.\d{1,9}",)
# A version begins after one of these, and most bytes between the parts of a library are such.
_NULS = re.compile(rb"\0\0+")
_PACKAGES = r"(?:.*/)?(?:site|dist)-packages/"
_LIB = r"(?:usr/)?lib(?:32|64)?/(?:[a-z0-9_]+-linux-gnu\w*/)?"


class Readable(Protocol):
    """A file with a `read` that gives at most so many bytes, and none at the end."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadRule:
    """`text`: at most so many bytes are kept, of longer files none; `scanned`: only matches.

    `digested`: only the sha256 is kept, as text.
    """

    text: int = 0
    scanned: Sequence[bytes] = ()
    digested: bool = False

    def reads(self, size: int) -> bool:
        """Tell whether a file of this size has to be read."""
        return bool(self.scanned) or self.digested or 0 < size <= self.text


# Only that there is such a file or folder is of interest, and its name.
_NAMED = ReadRule()
# No two repetitions in a row may take the same characters: an image's maker chose the path.
_RULES = {
    rf"{_LIB}libc(?:\.so\.6|-2\.\d+\.so)": ReadRule(scanned=_LIBC),
    r"(?:.*/)?libmpi(?:ch)?\.so[.\d]*": ReadRule(scanned=MPI_LIBRARY),
    r"(?:.*/)?bin/python(?:3(?:\.\d+)?)?": ReadRule(text=4096),
    r"(?:etc|usr/lib)/os-release": ReadRule(text=_TEXT_BYTES),
    r"(?:.*/)?pyvenv\.cfg": ReadRule(text=4096),
    r".*/(?:site|dist)-packages/torch/version\.py": ReadRule(text=65536),
    r"usr/local/cuda[^/]*/version\.(?:json|txt)": ReadRule(text=65536),
    r"opt/rocm[^/]*/\.info/version(?:-dev)?": ReadRule(text=4096),
    r"(?:.*/)?pkgconfig/(?:ompi|mpich)\.pc": ReadRule(text=65536),
    r"(?:usr/)?lib/apk/db/installed": ReadRule(text=_TEXT_BYTES),
    r"\.singularity\.d/(?:labels\.json|env/[^/]+\.sh)": ReadRule(text=_TEXT_BYTES),
    r"var/lib/dpkg/status": ReadRule(text=_DATABASE_BYTES),
    r"(?:var/lib|usr/lib/sysimage)/rpm/rpmdb\.sqlite": ReadRule(text=_DATABASE_BYTES),
    r"usr/share/doc/[^/]+/copyright": ReadRule(text=_TEXT_BYTES),
    r"etc/apt/sources\.list(?:\.d/[^/]+)?": ReadRule(text=65536),
    r"etc/(?:yum|zypp)[./]repos\.d/[^/]+\.repo": ReadRule(text=65536),
    r"etc/(?:dnf|yum)/vars/[^/]+": ReadRule(text=4096),
    r"opt/sifwright/plan\.json": ReadRule(text=_TEXT_BYTES),
    rf"{_PACKAGES}[^/]+\.(?:dist-info/(?:METADATA|WHEEL)|egg-info(?:/PKG-INFO)?)": ReadRule(
        text=_TEXT_BYTES
    ),
    # It has the sha256 of every file that pip installed.
    rf"{_PACKAGES}[^/]+\.dist-info/RECORD": ReadRule(digested=True),
    rf"{_PACKAGES}[^/]+\.dist-info/(?:licenses/.+|(?:LICEN[CS]E|COPYING|NOTICE)[^/]*)": _NAMED,
    r"(?:usr/)?lib/ld-musl-[^/]+\.so\.1": _NAMED,
    r"usr/local/cuda-\d+\.\d+|opt/rocm-\d+\.\d[.\d]*": _NAMED,
    r"(?:.*/)?libcudart\.so\.\d+\.\d[.\d]*": _NAMED,
    r"(?:.*/)?conda-meta/(?:history|(?:python|cuda-cudart|cudatoolkit)-\d[^/]*\.json)": _NAMED,
    r"(?:.*/)?lib(?:64)?/python3\.\d+/os\.py": _NAMED,
    r"(?:.*/)?lib(?:nccl|rccl)-net[^/]*\.so[.\d]*": _NAMED,
}
# One pass over a path, however many rules there are: an image has 200,000 paths.
_ANY = re.compile("|".join(f"({pattern})" for pattern in _RULES), re.DOTALL)
_WANTS = tuple(_RULES.values())
# The code of Python packages, and what programs share apart from their licences.
_OTHER_FOLDERS = re.compile(
    r"usr/share/(?!doc$)[^/]+|usr/(?:include|src)|(?:.*/)?(?:__pycache__|pkgs)"
    rf"|{_PACKAGES}[^/]+(?<!\.dist-info)(?<!\.egg-info)|{_PACKAGES}[^/]+-info/(?!licenses$)[^/]+",
    re.DOTALL,
)
# Thousands of links that lead to nothing of the above.
_NO_LINKS = ("usr/share/", "etc/ssl/", "proc/", "sys/")
# But packages of one source share their copyright file.
_DOCUMENTS = "usr/share/doc/"


def want(path: str) -> ReadRule | None:
    """Return the rule for a path of the image (without a slash in front), or None."""
    match = _ANY.fullmatch(path)
    return _WANTS[(match.lastindex or 1) - 1] if match else None


def keeps_link(path: str) -> bool:
    """Tell whether a symbolic link may lead to such a file."""
    return not path.startswith(_NO_LINKS) or path.startswith(_DOCUMENTS)


def may_list_packages(folder: str) -> bool:
    """Tell whether files below a folder may say which packages are there.

    The packages themselves have most of the folders of an image.
    """
    return not _OTHER_FOLDERS.fullmatch(folder)


def keep(wanted: ReadRule, size: int, file: Readable) -> bytes:
    """Return the part of a file that is kept; a long file is read in pieces."""
    if wanted.scanned:
        return _scan(wanted.scanned, file)
    if wanted.digested:
        return sha256_of_blocks(iter(lambda: file.read(_PIECE), b"")).encode()
    return file.read(size) if wanted.reads(size) else b""


def _scan(patterns: Sequence[bytes], file: Readable) -> bytes:
    """Return the first match of each pattern, a line for each."""
    matches = [b""] * len(patterns)
    tail = b""
    while piece := file.read(_PIECE):
        data = tail + _NULS.sub(b"\0", piece)
        for index, pattern in enumerate(patterns):
            if not matches[index] and (match := re.search(pattern, data)):
                matches[index] = match[0].strip(b"\0")
        if all(matches):
            break
        tail = data[-_OVERLAP:]
    return b"\n".join(matches)
