"""The wheels that a step will install, resolved by uv with this machine's settings of pip.

pip cannot resolve for another Python than its own. It would take this machine's values for markers
such as `python_version < "3.12"`.
"""

from __future__ import annotations

import os
import re
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.pylock import Pylock
from packaging.requirements import Requirement
from packaging.tags import Tag, create_compatible_tags_selector
from packaging.utils import canonicalize_name, parse_wheel_filename
from uv import find_uv_bin

from sifwright.catalog.mirrors import redirect_download
from sifwright.host.network import pip_settings, sdist, wheel_tags
from sifwright.host.network.wheel_tags import GLIBC
from sifwright.make_image.downloads.fetch_file import File
from sifwright.plan.model import Plan, Step
from sifwright.system import files, processes

if TYPE_CHECKING:
    from threading import Event

    from packaging.pylock import PackageWheel

    Tagged = tuple[PackageWheel, frozenset[Tag]]
    Select = Callable[[Iterable[Tagged]], Iterator[PackageWheel]]

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SECONDS = 180.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolveRequest:
    """The packages that a step installs; those of `present` are in the image by then.

    `indexes` are the layer's own, asked where the machine's settings do not lead to everything.
    `glibc` is the minor version of the newest C library that wheels may need. Without `deps`, only
    what the requirements name is looked up.
    """

    requirements: tuple[str, ...]
    present: tuple[str, ...]
    indexes: tuple[str, ...]
    python: str
    processor: str
    glibc: int = GLIBC
    deps: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolvedLock:
    """A lock file. `foreign`: some of it is found in the layer's own indexes only."""

    lock: str
    foreign: bool


def question(plan: Plan, number: int, settings: Mapping[str, str]) -> ResolveRequest | None:
    """Return the question for a step; None if it names no package, or uv could not answer."""
    step, python = plan.steps[number], plan.facts.get("python", "")
    packages = list(step.packages())
    local = settings.get("no-index", "").lower() in sdist.TRUE
    if local or not packages or not re.fullmatch(r"[0-9]+\.[0-9]+", python):
        return None
    requirements = tuple(requirement for requirement, _ in packages)
    named = {canonicalize_name(Requirement(requirement).name) for requirement in requirements}
    indexes = (redirect_download(index) for _, index in packages)
    return ResolveRequest(
        requirements=requirements,
        present=tuple(sorted(set(_present(plan.steps[:number])) - named)),
        indexes=tuple(dict.fromkeys(filter(None, indexes))),
        python=python,
        processor=plan.site.processor,
    )


def key(question: ResolveRequest, settings: Mapping[str, str]) -> str:
    """Return the key of a kept answer: for a day, because indexes get new versions."""
    today = datetime.now(UTC).date().isoformat()
    return files.sha256_of_json(asdict(question), dict(settings), GLIBC, today)


def ask(
    question: ResolveRequest, settings: Mapping[str, str], folder: Path, stop: Event
) -> ResolvedLock | None:
    """Ask uv, in an empty folder; None if there is no answer, or `stop` was set before it came.

    As the layers do: by the machine's own settings, and only then with the layer's index.
    """
    (folder / "requirements.in").write_text(
        "".join(f"{line}\n" for line in question.requirements), encoding="utf-8"
    )
    never = (f'{name} ; python_version < "0"\n' for name in question.present)
    (folder / "overrides.txt").write_text("".join(never), encoding="utf-8")
    for indexes in dict.fromkeys(((), question.indexes)):
        lock = folder / "pylock.toml"
        environment = _environment(settings, indexes, folder)
        if _run(_command(question, lock, folder), environment, folder, stop):
            return ResolvedLock(lock=lock.read_text(encoding="utf-8"), foreign=bool(indexes))
    return None


def _present(steps: tuple[Step, ...]) -> Iterator[str]:
    """Return the packages of earlier steps: a layer provides torch under the package's name."""
    for step in steps:
        named = (Requirement(requirement).name for requirement, _ in step.packages())
        yield from map(canonicalize_name, (*named, *step.layer.provides))


def _command(question: ResolveRequest, lock: Path, folder: Path) -> list[str]:
    return [
        *(find_uv_bin(), "pip", "compile", "--quiet", "--no-config", "--no-header"),
        *("--python", sys.executable, "--python-version", question.python),
        *("--python-platform", f"{question.processor}-manylinux_2_{question.glibc}"),
        *(() if question.deps else ("--no-deps",)),
        # Take the best version of all indexes, as pip does. Nothing is built here.
        *("--index-strategy", "unsafe-best-match", "--only-binary", ":all:"),
        *("--overrides", str(folder / "overrides.txt"), "--format", "pylock.toml"),
        *("--output-file", str(lock), str(folder / "requirements.in")),
    ]


def _environment(
    settings: Mapping[str, str], indexes: tuple[str, ...], folder: Path
) -> dict[str, str]:
    """Return pip's settings as uv's, not for the command line, which everybody can read."""
    places = ("UV_", "PIP_", "PYTHON", "VIRTUAL_ENV", "CONDA")
    own = {name: value for name, value in os.environ.items() if not name.startswith(places)}
    first = settings.get("index-url", "") or (sdist.default_index() if indexes else "")
    extra = settings.get("extra-index-url", "").split()
    searched = [*reversed(extra), first, *indexes]
    links = [str(files.expand_home(word)) for word in settings.get("find-links", "").split()]
    variables = {
        "UV_CACHE_DIR": str(folder / "cache"),
        "UV_FIND_LINKS": ",".join(links),
        "UV_INSECURE_HOST": settings.get("trusted-host", ""),
        "SSL_CERT_FILE": pip_settings.ca_bundle(),
        # Reversed: if several have a file, pip takes the last, uv the first.
        "UV_INDEX": " ".join(searched[:-1]),
        "UV_DEFAULT_INDEX": searched[-1],
        **dict.fromkeys(("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"), settings.get("proxy", "")),
    }
    return own | {name: value for name, value in variables.items() if value}


def _run(command: list[str], env: Mapping[str, str], folder: Path, stop: Event) -> bool:
    """Return whether it ended well before the stop."""
    deadline = time.monotonic() + _SECONDS
    with processes.background(command, env=env, log=folder / "uv.log") as process:
        while process.poll() is None:
            if stop.wait(0.02) or time.monotonic() > deadline:
                return False
        return process.returncode == 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """A wheel on a server, under its package's normalized name."""

    package: str
    name: str
    url: str
    sha256: str

    @property
    def file(self) -> File:
        return File(name=self.name, sha256=self.sha256, locate=lambda: self.url)


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedWheels:
    """The wheels that can be fetched. `whole`: with those in folders of this machine, all."""

    wheels: tuple[Wheel, ...]
    whole: bool


def read(lock: str, python: str, processor: str) -> LockedWheels:
    """Return the wheel that pip takes of each locked package, if it can be checked.

    pip reads wheels in folders of this machine itself. Raises `ValueError` for a file that is no
    TOML, `PylockValidationError` for one that is no lock of wheels.
    """
    best = best_wheels(lock, python, processor)
    wheels, local = [], 0
    for package, wheel in best:
        url, sha256 = (wheel.url or "", wheel.hashes.get("sha256", "")) if wheel else ("", "")
        if wheel and (wheel.path or url.startswith("file:")):
            local += 1
        elif wheel and url.startswith(("http://", "https://")) and _DIGEST.fullmatch(sha256):
            wheels.append(Wheel(package=package, name=wheel.filename, url=url, sha256=sha256))
    return LockedWheels(wheels=tuple(wheels), whole=len(wheels) + local == len(best))


def best_wheels(lock: str, python: str, processor: str) -> list[tuple[str, PackageWheel | None]]:
    """Return each locked package with the wheel that pip takes; raises as `read` does."""
    select = create_compatible_tags_selector(wheel_tags.oldest(python, processor))
    packages = Pylock.from_dict(tomllib.loads(lock)).packages
    return [(item.name, _best(item.wheels or (), select)) for item in packages]


def _best(wheels: Sequence[PackageWheel], select: Select) -> PackageWheel | None:
    """Return the wheel that fits best; if several sources have it, pip takes the last."""
    tagged = [(wheel, parse_wheel_filename(wheel.filename)[3]) for wheel in reversed(wheels)]
    return next(select(tagged), None)
