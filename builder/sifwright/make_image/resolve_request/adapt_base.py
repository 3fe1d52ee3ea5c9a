"""An inspected base image as a table row that options follow, or its refusal."""

import re
from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from sifwright.catalog import pmi
from sifwright.catalog.model import Site
from sifwright.errors import Problem, quoted
from sifwright.images.contents.image_facts import ImageFacts, Python, Torch

# The oldest Python that the run scripts start with (docs/reference/run-scripts.md).
OLDEST_PYTHON = (3, 6)
_VENDORS = {"cuda": ("nvidia", "CUDA"), "rocm": ("amd", "ROCm")}
# Distributions with packages that layers can install.
_APT = ("debian", "ubuntu")
# A path that is one word of a script, and a folder that plugins can be taken out of.
_PATH = re.compile(r"/(?:[A-Za-z0-9_+@-][A-Za-z0-9._+@-]*/)+[A-Za-z0-9._+@-]+")
# Not LD_LIBRARY_PATH, which leads to more than a plugin.
_VARIABLE = re.compile(r"([NR]CCL_[A-Z0-9_]*)=?.*", re.DOTALL)
# NCCL's plugin, even where it is gone, and a file of NGC with the versions of its own packages.
_MISLEADING = ("NCCL_NET_PLUGIN", "PIP_CONSTRAINT")
# Packed files are at most a third of what they are on disk (pytorch/pytorch, NGC, rocm/pytorch).
_UNPACKED = 3


def preferred_python(facts: ImageFacts) -> Python | None:
    with_torch = (python for python in facts.pythons if python.torch)
    return next(with_torch, next(iter(facts.pythons), None))


def table_row(facts: ImageFacts) -> dict[str, str]:
    """Return the image's row in the table base-images; empty cells for missing programs."""
    python = preferred_python(facts)
    torch = python.torch if python else None
    matches = (_VARIABLE.match(plugin.set_by) for plugin in facts.plugins)
    led = {match[1] for match in matches if match}
    return {
        "python": _series(python.version) if python else "",
        "program": python.path if python else "",
        # 2.8.0 of 2.8.0a0+34c6371d24.nv25.08.
        "torch": ".".join(map(str, (*_version(torch.version), 0, 0)[:3])) if torch else "",
        "cuda": _series(torch.cuda if torch else facts.cuda),
        "rocm": _series(torch.rocm if torch else facts.rocm),
        "toolkit-cuda": _series(facts.cuda),
        "toolkit-rocm": _series(facts.rocm),
        "mpi": pmi.family(facts.mpi),
        "apt": facts.os if facts.os in _APT else "",
        "plugins": " ".join(dict.fromkeys(plugin.path for plugin in facts.plugins)),
        # Variables that lead NCCL to another network's plugin, or pip to another torch.
        "unset": " ".join(
            sorted({*led, *(name for name in _MISLEADING if name in facts.environment)})
        ),
    }


def origin(facts: ImageFacts, name: str) -> str:
    """Return the origin of the row for `plan --explain`: the image as the plan names it."""
    plain = name.partition("@")[0]
    return f"inspected {plain}@{facts.digest}" if facts.digest else f"inspected {name}"


def unpacked_mb(packed: int) -> int:
    """Return the megabytes that an image of so many packed bytes takes as files."""
    return 1 + packed * _UNPACKED // 10**6


def problems(facts: ImageFacts, site: Site, where: str) -> Iterator[Problem]:
    """Yield every reason why no image for this site can start from it."""
    if facts.processor != site.processor:
        message = f"it is for {facts.processor} processors, site '{site.name}' has {site.processor}"
        yield Problem(where=where, what=message, fix="Name one that is for the site's processors.")
    yield from problems_at_every_site(facts, where)
    python = preferred_python(facts)
    if python and python.torch:
        yield from _of_torch(python.torch, site, where)


def problems_at_every_site(facts: ImageFacts, where: str) -> Iterator[Problem]:
    """Yield every reason why no image for any site can."""
    if facts.libc.startswith("musl"):
        message = f"its C library is {facts.libc}, for which there are no wheels of torch"
        yield Problem(where=where, what=message, fix="Take a variant on glibc: Debian, not Alpine.")
    python = preferred_python(facts)
    if python is None:
        fix = "Name one that has, or take an image that installs one: sifwright list images."
        yield Problem(where=where, what="it has no Python", fix=fix)
        return
    if _version(python.version) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        message = f"its Python, {python.path}, is {python.version}; the run scripts need {oldest}"
        yield Problem(where=where, what=message, fix="Name an image with a newer one.")
    # Names from the image end up in scripts: quoted there, and plain to begin with.
    for path in (python.path, *(plugin.path for plugin in facts.plugins)):
        if not _PATH.fullmatch(path):
            message = f"its file {quoted(path)} cannot be named in a plan"
            yield Problem(where=where, what=message, fix="Name an image with plain file names.")


def _of_torch(torch: Torch, site: Site, where: str) -> Iterator[Problem]:
    built = {"cuda": torch.cuda, "rocm": torch.rocm}
    kinds = [_VENDORS[name] for name, version in built.items() if version]
    if site.vendor == "cpu" or any(vendor == site.vendor for vendor, _ in kinds):
        return
    gpus = " and ".join(f"for {name}" for _, name in kinds) or "for no GPU"
    message = f"its torch {torch.version} is {gpus}, and the GPUs of site '{site.name}' are"
    yield Problem(
        where=where,
        what=f"{message} {site.vendor}'s",
        fix=f"Name an image with torch for {site.vendor}.",
    )


def _series(version: str) -> str:
    """Return the series: 3.12 of 3.12.4, and 6.4 of 6.4.43482."""
    return ".".join(map(str, (*_version(version), 0)[:2])) if version else ""


def _version(text: str) -> tuple[int, ...]:
    """Return its numbers; none if it is no version."""
    try:
        return Version(text).release
    except InvalidVersion:
        match = re.match(r"\d+(\.\d+)*", text)
        return tuple(map(int, match[0].split("."))) if match else ()
