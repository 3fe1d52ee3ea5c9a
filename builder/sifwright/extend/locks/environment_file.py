"""An environment.yml of conda: no lock by itself, but its entries may be exact."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sifwright.errors import Problem, UsageError
from sifwright.extend.locks.model import Lock, read_yaml, refused
from sifwright.extend.read_requirements import (
    ParsedRequirement,
    read_lines,
)

_PYTHON = re.compile(r"python\s*={1,2}\s*(3\.[0-9]+)(\.[0-9*]+)?(=[a-z0-9_]+)?")
_EXACT = re.compile(r"([a-z0-9_][a-z0-9._-]*)=[a-z0-9._]+=[a-z0-9._]+")
_LOCK = "Lock it: pixi init --import environment.yml && pixi lock, and name pixi.lock."


def read(text: str, path: Path, *, conda: bool) -> Lock:
    """Read the file; raises `UsageError` for all that is not exact. `conda`: the image has it."""
    entries = read_yaml(text, path).get("dependencies")
    if not isinstance(entries, list):
        raise refused(path, "it has no list 'dependencies'", _LOCK)
    names = [item.rpartition("::")[2].strip() for item in entries if isinstance(item, str)]
    lines = [
        str(line) for item in entries if isinstance(item, dict) for line in item.get("pip") or ()
    ]
    hashed = read_lines("\n".join(lines), f"{path}: pip", path).wanted if lines else []
    problems = [*_conda_problems(names, path, conda=conda), *_pip_problems(hashed)]
    if problems:
        raise UsageError(*problems)
    python = next((match[1] for name in names if (match := _PYTHON.fullmatch(name))), "")
    return Lock(
        path=path,
        hashed=tuple(hashed),
        python=python,
        conda=_options(names, python) if conda else {},
    )


def _conda_problems(names: Sequence[str], path: Path, *, conda: bool) -> Iterator[Problem]:
    for name in names:
        # An image has Python and pip anyway.
        if re.match(r"pip\b", name) or _PYTHON.fullmatch(name):
            continue
        if not conda:
            message = f"{name} is a package of conda, and the image has no conda"
            fix = "Put it below 'pip:', or extend an image with the layer conda."
            yield Problem(where=str(path), what=message, fix=fix)
        elif not _EXACT.fullmatch(name):
            message = f"{name} is not exact (NAME=VERSION=BUILD)"
            yield Problem(where=str(path), what=message, fix=_LOCK)


def _pip_problems(wanted: Sequence[ParsedRequirement]) -> Iterator[Problem]:
    for item in wanted:
        exact = [spec for spec in item.requirement.specifier if spec.operator in {"==", "==="}]
        if len(exact) != 1 or exact[0].version.endswith("*") or not item.hashes:
            message = f"{item.requirement} is not locked: it needs NAME==VERSION and a --hash"
            fix = "Take the lines that 'uv pip compile --generate-hashes' prints."
            yield Problem(where=item.where, what=message, fix=fix)


def _options(names: Sequence[str], python: str) -> Mapping[str, str]:
    """Return the options of layer conda that make this environment."""
    packages = [name for name in names if _EXACT.fullmatch(name)]
    if not packages:
        return {}
    return {"packages": " ".join(packages)} | ({"python": python} if python else {})
