"""Compare what is installed with a lock; packages of layers below are no part of it.

`versions` prints what is installed, and `compare LOCKED BEFORE` ends with what differs. LOCKED has
requirements and packages of conda, BEFORE what `versions` printed before the installation.
"""
# ruff: noqa: INP001  # a program of its own

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

try:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name
except ImportError:
    from pip._vendor.packaging.requirements import Requirement
    from pip._vendor.packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def versions() -> dict[str, str]:
    """Return packages and versions; of two with one name, the one that is imported."""
    packages: dict[str, str] = {}
    for package in distributions():
        if name := package.metadata["Name"]:
            packages.setdefault(canonicalize_name(name), package.version)
    return packages


def differences(
    wanted: Mapping[str, Requirement], before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[str]:
    """Yield each package that is not as locked, or neither locked nor from a layer below."""
    for name, requirement in sorted(wanted.items()):
        if not requirement.specifier.contains(after.get(name, "0.dev0"), prereleases=True):
            yield f"{name} is {after.get(name, 'missing')}, the lock has {requirement.specifier}"
    for name in sorted((before.keys() | after.keys()) - wanted.keys()):
        if before.get(name) != after.get(name):
            yield f"{name} was {before.get(name)}, is {after.get(name)}, and is not in the lock"


def conda_differences(wanted: set[str]) -> Iterator[str]:
    """Yield each package of conda that is locked or installed, and not both."""
    files = Path(os.environ["CONDA_PREFIX"]).glob("conda-meta/*.json")
    for name in sorted(wanted ^ {file.name[: -len(".json")] for file in files}):
        yield f"conda: {name} is {'missing' if name in wanted else 'not in the lock'}"


def compare(locked: Path, before: Path) -> None:
    """End the program with the differences, if there are any."""
    lines = locked.read_text(encoding="utf-8").splitlines()
    conda = {line[len("conda ") :] for line in lines if line.startswith("conda ")}
    requirements = [Requirement(line) for line in lines if not line.startswith("conda ")]
    wanted = {
        canonicalize_name(item.name): item
        for item in requirements
        if item.marker is None or item.marker.evaluate()
    }
    problems = [*differences(wanted, json.loads(before.read_text(encoding="utf-8")), versions())]
    if conda:
        problems += conda_differences(conda)
    if problems:
        sys.exit("\n".join(["what is installed is not what the lock has:", *problems]))


if sys.argv[1] == "versions":
    sys.stdout.write(json.dumps(versions()))
else:
    compare(Path(sys.argv[2]), Path(sys.argv[3]))
