"""Refusals of an engine as errors of ours."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import requests
import urllib3
from docker import errors

from sifwright.errors import BuildError, MachineError, SifwrightError
from sifwright.host.engines.docker import pull_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.host.engines.docker.client import Docker

# What is raised where the engine ends, or is stopped, in the middle.
LOST = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)
_NO_ROOM = ("no space left on device", "disk quota exceeded")
_NO_FOLDER = ("bind source path does not exist", "statfs /")


@contextmanager
def translate_errors(engine: Docker, *, missing: bool = False, pulling: str = "") -> Iterator[None]:
    """Turn what the SDK raises inside into ours; `missing`: but for what is not there.

    `pulling` is the image that a registry is asked for: most of what goes wrong is its doing.
    """
    try:
        yield
    except errors.NotFound as error:
        if missing:
            raise
        raise _error(engine, one_line(error), pulling) from None
    except errors.DockerException as error:
        raise _error(engine, one_line(error), pulling) from None
    except LOST as error:
        raise BuildError.of(
            f"the connection to {engine} was lost: {one_line(error)}",
            where=engine.address,
            fix="See whether it still runs, and what its log says; then build again.",
        ) from None


def one_line(error: Exception) -> str:
    """Return the reason in one line."""
    text = str(getattr(error, "explanation", "") or error)
    return " ".join(text.split()) or type(error).__name__


def is_full(why: str) -> bool:
    """Return whether the engine has no space left."""
    return any(words in why.lower() for words in _NO_ROOM)


def _error(engine: Docker, why: str, pulling: str) -> SifwrightError:
    if is_full(why):
        return MachineError.of(
            f"the disk of {engine} is full: {why}",
            where=engine.root() or engine.address,
            fix="Free space there: 'docker system df' shows what takes it; docs/how-to/docker.md.",
        )
    if any(words in why.lower() for words in _NO_FOLDER):
        return MachineError.of(
            f"{engine} does not see a folder of this machine: {why}",
            where=engine.address,
            fix="Build on the machine that the engine runs on.",
        )
    if pulling:
        message = f"{engine} cannot pull it: {why}"
        fix = pull_errors.advice_for(why, pulling, engine.processor)
        return MachineError.of(message, where=pulling, fix=fix)
    fix = "The log of the engine may say more."
    return BuildError.of(f"{engine} cannot do it: {why}", where=engine.address, fix=fix)
