"""Keep two commands from changing the jobs of one folder at the same time."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sifwright.errors import MachineError
from sifwright.make_image.cache import claims
from sifwright.system import cache_folder


@contextmanager
def alone(jobs: Path) -> Iterator[None]:
    """Hold the claim on the folder of all jobs inside; it is in the step cache.

    Raises `MachineError` if another command has it, on any machine with this cache.
    """
    root = cache_folder.make(cache_folder.root())
    with claims.try_claim(root, _key(jobs)) as is_ours:
        if not is_ours:
            message = "another command submits or cancels jobs now"
            fix = "Give this command again when that one has ended."
            raise MachineError.of(message, where=str(jobs), fix=fix)
        yield


def is_held(jobs: Path) -> bool:
    """Return whether a command holds the claim."""
    return claims.is_claimed(cache_folder.root(), _key(jobs))


def _key(jobs: Path) -> str:
    return hashlib.sha256(str(jobs.resolve()).encode()).hexdigest()
