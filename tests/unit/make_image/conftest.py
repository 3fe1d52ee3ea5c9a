"""A step cache, and the plan of the small project."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.load_catalog import load_catalog
from sifwright.plan.resolve import resolve
from tests.unit.stores import new_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sifwright.make_image.cache.store import Store
    from sifwright.plan.model import Plan


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def store(tmp_path: Path, notes: list[str]) -> Store:
    """Make an empty step cache, which reports dropped entries in `notes`."""
    return new_store(tmp_path / "steps-1", notes.append)


@pytest.fixture
def set_umask() -> Iterator[Callable[[int], int]]:
    """Return os.umask, and restore the umask afterwards."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.fixture
def plan(project: Path) -> Plan:
    return resolve(load_catalog(project / "defs", project), "here", "", [])
