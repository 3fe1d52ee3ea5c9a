"""The content of a lock file: Python packages, and packages of conda."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from packaging.pylock import Pylock

from sifwright.errors import UsageError
from sifwright.extend.read_requirements import ParsedRequirement

AGAIN = "Lock again with the tool that wrote it."


@dataclass(frozen=True, kw_only=True, slots=True)
class Lock:
    """Packages with their files in `pylock`; those of `hashed` have hashes only.

    `conda` has options of layer conda, and `python` the version of conda's Python.
    """

    path: Path
    pylock: Pylock | None = None
    hashed: tuple[ParsedRequirement, ...] = ()
    python: str = ""
    conda: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def refused(path: Path, message: str, fix: str) -> UsageError:
    return UsageError.of(message, where=str(path), fix=fix)


def read_yaml(text: str, path: Path) -> Mapping[str, Any]:
    """Read a mapping; raises `UsageError`. By libyaml where it is: such files have megabytes."""
    try:
        data = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # safe
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise refused(path, f"not a lock file: {reason}", AGAIN) from None
    if not isinstance(data, dict):
        raise refused(path, "not a lock file: no mapping of names", AGAIN)
    return data
