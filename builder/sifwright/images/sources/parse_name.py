"""Names of images, as skopeo and Apptainer write them."""

import re
from pathlib import Path

from sifwright.images.model import Source, SourceError
from sifwright.system import files

KINDS = (
    "docker://NAME, oci-archive:FILE, oci:FOLDER, docker-archive:FILE, docker-daemon:NAME, FILE.sif"
)
_FILES = ("oci-archive", "oci", "docker-archive")
_REFUSED = {
    "oras": "pull it first: apptainer pull x.sif {name}, and name x.sif",
    "library": "pull it first: apptainer pull x.sif {name}, and name x.sif",
    "shub": "the service is gone; build the image again from its definition file",
    "containers-storage": "podman push IMAGE oci-archive:x.tar, and name oci-archive:x.tar",
    "dir": "skopeo copy {name} oci-archive:x.tar, and name oci-archive:x.tar",
}
# The distribution's grammar (reference.go of github.com/distribution/reference).
_HOST = r"[A-Za-z0-9]+(?:[.-]+[A-Za-z0-9]+)*(?::\d+)?"
_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_NAME = re.compile(
    rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::\w[\w.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?",
    re.ASCII,
)


def parse(text: str) -> Source:
    """Read the name of an image; raises `SourceError`, which says how to write it."""
    scheme, colon, rest = text.partition(":")
    if scheme in _REFUSED and colon:
        fix = f"{_REFUSED[scheme].format(name=text)}."
        raise SourceError.of(f"images of {scheme}: are not read", where=text, fix=fix)
    if scheme in _FILES and rest:
        return _file(scheme, rest.removeprefix("//"))
    if scheme == "docker-daemon" and rest:
        return Source(kind=scheme, name=_checked(rest.removeprefix("//"), text))
    if text.startswith(("docker://", "http://", "https://")):
        name = text.removeprefix("docker://").removeprefix("https://")
        _checked(name.removeprefix("http://"), text)
        return Source(kind="docker", name=name)
    if text.endswith(".sif") or text.startswith(("/", "./", "../", "~/")):
        return Source(kind="sif", name=str(files.expand_home(text)))
    return Source(kind="docker", name=_checked(text, text))


def is_file_or_scheme(text: str) -> bool:
    """Tell whether a word names an image rather than something of the project."""
    return Path(text).is_file() or bool(set("/:") & set(text)) or text.endswith(".sif")


def _file(kind: str, rest: str) -> Source:
    """Split a file and a tag at the first colon, unless the file's own name has a colon."""
    path, _, tag = rest.partition(":")
    if files.expand_home(rest).exists():
        path, tag = rest, ""
    return Source(kind=kind, name=str(files.expand_home(path)), tag=tag)


def _checked(name: str, text: str) -> str:
    if not _NAME.fullmatch(name):
        fix = f"Write it as one of these: {KINDS}."
        raise SourceError.of("is no name of an image", where=text, fix=fix)
    return name
