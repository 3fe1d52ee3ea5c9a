"""The facts that `sifwright inspect` prints, and that a plan on the image adapts to."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Torch:
    """An installed torch, as its `version.py` has it; `cuda` and `rocm` are empty without."""

    version: str  # with its local part, as in 2.8.0+cu126
    cuda: str  # as in 12.6
    rocm: str  # as in 6.4


@dataclass(frozen=True, kw_only=True, slots=True)
class Python:
    """A Python of the image. `path` is its program, `prefix` the folder of its environment."""

    path: str
    version: str  # as in 3.12
    kind: str  # conda, venv or system
    prefix: str
    torch: Torch | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Plugin:
    """A library that takes NCCL's or RCCL's traffic to a network, and what makes them load it."""

    path: str
    set_by: str = ""  # the variable of the image that leads to it, as in NCCL_NET_PLUGIN=aws-ofi


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageFacts:
    """Facts read from an image's own files and configuration, without starting it.

    `digest` is the digest of the manifest of one processor (sha256:…), or a SIF's fingerprint. For
    an image that an engine has or wrote, it is the digest of the configuration (the image ID).
    `pythons` have the order in which the image's own PATH finds them; the first is its `python`.
    Pythons outside of PATH come last.
    """

    source: str
    digest: str
    processor: str  # as `uname -m` says it
    os: str  # ID of os-release, as in debian
    os_version: str  # VERSION_ID of os-release, as in 12
    libc: str  # glibc 2.36, musl 1.2.5, or empty
    environment: dict[str, str]
    unread_environment: tuple[str, ...] = ()  # variables with values that only a shell can tell
    user: str
    labels: dict[str, str]
    pythons: tuple[Python, ...]
    plugins: tuple[Plugin, ...]
    cuda: str  # toolkit or runtime in the image, as in 12.6
    rocm: str
    mpi: tuple[str, ...]  # as in Open MPI 5.0.8
    bytes: int  # as it travels
