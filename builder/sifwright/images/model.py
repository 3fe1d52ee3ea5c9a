"""Types that all sources of images share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sifwright.errors import UsageError
from sifwright.images.contents.image_tree import BadImage, ImageTree
from sifwright.system.progress import Timer

# Processors of `uname -m`, and their names in images (GOARCH).
ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "ppc64le": "ppc64le",
    "riscv64": "riscv64",
    "s390x": "s390x",
}


class SourceError(UsageError):
    """The name is no image, or the image is missing or cannot be trusted."""


class NoSuchImage(SourceError):
    """The registry answers that it has none of that name."""


class OtherProcessor(BadImage):
    """An error for an image that exists, but not for this processor."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """The location of an image: `name` is a path or a reference, `tag` one of several in a file."""

    kind: str
    name: str
    tag: str = ""

    def __str__(self) -> str:
        end = f":{self.tag}" if self.tag else ""
        return f"{self.kind}:{'//' if self.kind == 'docker' else ''}{self.name}{end}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """The configuration of an image; of a SIF, the same from its files.

    `unread` names variables with values that only a shell can tell.
    """

    processor: str
    environment: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    user: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    # The sha256 of each layer, unpacked.
    layers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """Settings of a base image that a Dockerfile continues with."""

    user: str = ""
    folder: str = ""
    shell: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    entry: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageContents:
    """An image that was read; `digest` and `bytes` as in `ImageFacts`."""

    digest: str
    config: Config
    tree: ImageTree
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundImage:
    """An image that is there. Images with the same `key` are the same for ever."""

    key: str
    read: Callable[[Timer], ImageContents]
