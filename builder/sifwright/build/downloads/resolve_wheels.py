"""The wheels that a step will install, resolved by uv with this machine's settings of pip.

Not pip, which cannot resolve for another Python than the one it runs with: markers such as
`python_version < "3.12"` would be this machine's.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from uv import find_uv_bin

from sifwright.build.downloads.wheels import GLIBC
from sifwright.host.network import pip_settings, sdist
from sifwright.system import processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from threading import Event

    from sifwright.plan.model import Plan, Step

_SECONDS = 180.0
_TRUE = ("1", "true", "yes", "on", "y", "t")


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolveRequest:
    """The packages that a step installs; those of `present` are in the image by then.

    `indexes` are the layer's own, asked where the machine's settings do not lead to everything.
    """

    requirements: tuple[str, ...]
    present: tuple[str, ...]
    indexes: tuple[str, ...]
    python: str
    processor: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolvedLock:
    """A lock file. `foreign`: some of it is found in the layer's own indexes only."""

    lock: str
    foreign: bool


def question(plan: Plan, number: int, settings: Mapping[str, str]) -> ResolveRequest | None:
    """Return the question for a step; None if it names no package, or uv could not answer."""
    step, python = plan.steps[number], plan.facts.get("python", "")
    packages = list(step.packages())
    local = settings.get("no-index", "").lower() in _TRUE
    if local or not packages or not re.fullmatch(r"[0-9]+\.[0-9]+", python):
        return None
    requirements = tuple(requirement for requirement, _ in packages)
    named = {canonicalize_name(Requirement(requirement).name) for requirement in requirements}
    indexes = (pip_settings.redirected(index) for _, index in packages)
    return ResolveRequest(
        requirements=requirements,
        present=tuple(sorted(set(_present(plan.steps[:number])) - named)),
        indexes=tuple(dict.fromkeys(filter(None, indexes))),
        python=python,
        processor=plan.site.processor,
    )


def key(question: ResolveRequest, settings: Mapping[str, str]) -> str:
    """Under which an answer is kept: for a day, because indexes get new versions."""
    today = datetime.now(UTC).date().isoformat()
    text = json.dumps([asdict(question), dict(settings), GLIBC, today], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def ask(
    question: ResolveRequest, settings: Mapping[str, str], folder: Path, stop: Event
) -> ResolvedLock | None:
    """Ask uv, in an empty folder; None if there is no answer, or `stop` was set before it came.

    As the layers do: by the machine's own settings, and only then with the layer's index.
    """
    (folder / "requirements.in").write_text(_lines(question.requirements))
    never = [f'{name} ; python_version < "0"' for name in question.present]
    (folder / "overrides.txt").write_text(_lines(never))
    tiers: list[tuple[str, ...]] = [(), question.indexes]
    for indexes in dict.fromkeys(tiers):
        lock = folder / "pylock.toml"
        environment = _environment(settings, indexes, folder)
        if _run(_command(question, lock, folder), environment, folder, stop):
            return ResolvedLock(lock=lock.read_text(), foreign=bool(indexes))
    return None


def _present(steps: tuple[Step, ...]) -> Iterator[str]:
    """Return the packages of earlier steps: a layer provides torch under the package's name."""
    for step in steps:
        yield from (
            canonicalize_name(Requirement(requirement).name) for requirement, _ in step.packages()
        )
        yield from (canonicalize_name(name) for name in step.layer.provides)


def _lines(words: list[str] | tuple[str, ...]) -> str:
    return "".join(f"{word}\n" for word in words)


def _command(question: ResolveRequest, lock: Path, folder: Path) -> list[str]:
    return [
        *(find_uv_bin(), "pip", "compile", "--quiet", "--no-config", "--no-header"),
        *("--python", sys.executable, "--python-version", question.python),
        *("--python-platform", f"{question.processor}-manylinux_2_{GLIBC}"),
        # As pip does: the best version, whichever index has it. Nothing is built here.
        *("--index-strategy", "unsafe-best-match", "--only-binary", ":all:"),
        *("--overrides", str(folder / "overrides.txt"), "--format", "pylock.toml"),
        *("--output-file", str(lock), str(folder / "requirements.in")),
    ]


def _environment(
    settings: Mapping[str, str], indexes: tuple[str, ...], folder: Path
) -> dict[str, str]:
    """Pip's settings as uv's. Not on the command line, which is everybody's to read."""
    places = ("UV_", "PIP_", "PYTHON", "VIRTUAL_ENV", "CONDA")
    own = {name: value for name, value in os.environ.items() if not name.startswith(places)}
    links = [str(Path(word).expanduser()) for word in settings.get("find-links", "").split()]
    variables = {
        "UV_CACHE_DIR": str(folder / "cache"),
        "UV_FIND_LINKS": ",".join(links),
        "UV_INSECURE_HOST": settings.get("trusted-host", ""),
        "SSL_CERT_FILE": pip_settings.ca_bundle(),
        **_indexes(settings, indexes),
        **dict.fromkeys(("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"), settings.get("proxy", "")),
    }
    return own | {name: value for name, value in variables.items() if value}


def _indexes(settings: Mapping[str, str], indexes: tuple[str, ...]) -> dict[str, str]:
    """Reverse the indexes: if several have a file, pip takes the last, uv the first."""
    extra = settings.get("extra-index-url", "").split()
    first = settings.get("index-url", "") or (sdist.default_index() if indexes else "")
    others = [*reversed(extra), first, *indexes]
    last = others.pop()
    return {"UV_INDEX": " ".join(others), "UV_DEFAULT_INDEX": last}


def _run(command: list[str], env: Mapping[str, str], folder: Path, stop: Event) -> bool:
    """Return whether it ended well before the stop."""
    deadline = time.monotonic() + _SECONDS
    with processes.background(command, env=env, log=folder / "uv.log") as process:
        while process.poll() is None:
            if stop.wait(0.02) or time.monotonic() > deadline:
                return False
        return process.returncode == 0
