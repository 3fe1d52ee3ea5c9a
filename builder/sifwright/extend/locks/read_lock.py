"""Read what another tool has locked: pylock.toml, uv.lock, pixi.lock or environment.yml."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.pylock import Pylock, PylockValidationError, is_valid_pylock_path

from sifwright.catalog.model import Catalog
from sifwright.errors import quoted
from sifwright.extend import extended_image
from sifwright.extend.locks import environment_file, pixi_lock, uv_lock
from sifwright.extend.locks.choose_files import Target, requirements_of
from sifwright.extend.locks.model import AGAIN, Lock, refused
from sifwright.extend.read_requirements import Requirements, load_text
from sifwright.plan.model import Plan
from sifwright.plan.resolve import resolve

_NAMES = "Name a pylock.toml, pylock.NAME.toml, uv.lock, pixi.lock or environment.yml."
# Both write what is read here.
_EXPORTS = {
    "poetry.lock": "Run: poetry export --format pylock.toml -o pylock.toml (poetry-plugin-export)",
    "pdm.lock": "Run: pdm export --format pylock -o pylock.toml",
}
_MOST_BYTES = 64 << 20


def read_locked(
    path: Path, catalog: Catalog, site: str, image: str, settings: Sequence[str]
) -> tuple[Requirements, list[str]]:
    """Return what an image gets, and notes; raises `UsageError` with all that is refused."""

    def plan(conda: Mapping[str, str]) -> Plan:
        requirements = Requirements(conda=conda)
        extension = extended_image.Extension(
            name="extended", image=image, requirements=requirements
        )
        with_layer = extended_image.extended(catalog, extension, frozenset())
        return resolve(with_layer, site, extension.name, settings)

    before = plan({})
    conda = before.step(extended_image.CONDA) is not None
    lock = read_lock(path, before.site.processor, conda=conda)
    base = plan(lock.conda)
    target = Target(
        python=base.facts.get("python", ""),
        processor=base.site.processor,
        held=dict(extended_image.held_versions(base.facts, base.steps[:-1])),
    )
    return requirements_of(lock, target)


def read_lock(path: Path, processor: str, *, conda: bool) -> Lock:
    """Read a lock file for a processor; raises `UsageError` with what is wrong.

    `conda`: the image has the layer conda.
    """
    text = _text(path)
    if path.name == "pixi.lock":
        return pixi_lock.read(text, path, processor, conda=conda)
    if path.name in {"environment.yml", "environment.yaml"}:
        return environment_file.read(text, path, conda=conda)
    if path.name == "uv.lock":
        return _read_pylock(uv_lock.as_pylock(text, path), path)
    if is_valid_pylock_path(path):
        return _read_pylock(text, path)
    message = f"{quoted(path.name)} is not the name of a lock file that can be read"
    raise refused(path, message, _EXPORTS.get(path.name, _NAMES))


def _text(path: Path) -> str:
    try:
        return load_text(path, _MOST_BYTES)
    except UnicodeDecodeError as error:
        raise refused(path, f"not UTF-8 text (byte {error.start})", _NAMES) from None
    except OSError as error:
        raise refused(path, f"cannot be read: {error.strerror}", _NAMES) from None


def _read_pylock(text: str, path: Path) -> Lock:
    try:
        return Lock(path=path, pylock=Pylock.from_dict(tomllib.loads(text)))
    except (tomllib.TOMLDecodeError, PylockValidationError, RecursionError) as error:
        raise refused(path, f"not a lock file: {error}", AGAIN) from None
