"""Sources of the network stacks, which `make test-slow` builds, at hand or not."""

import os
import subprocess

import pytest

from sifwright.catalog import mirrors
from sifwright.catalog.model import Source
from tests.catalogs import REAL
from tests.system.fabric.images import SOURCES, missing_sources
from tests.unit.conftest import program


def _source(address: str) -> Source:
    results = (source for layer in REAL.layers.values() for source in layer.sources)
    return next(source for source in results if source.url == address)


@pytest.mark.parametrize("name", SOURCES)
def test_the_mirror_has_every_pinned_commit(name: str) -> None:
    if missing := missing_sources():
        pytest.skip(
            f"{missing} does not answer, and SIFWRIGHT_MIRRORS names no copy: libfabric and the"
            " plugin are not built against NCCL and RCCL here (make test-slow)"
        )
    source = _source(f"https://github.com/{name}.git")
    address = mirrors.load().redirect(source.url, "git")
    command = [program("git"), "ls-remote", address]
    git = {**os.environ, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory"}
    answer = subprocess.run(
        command, check=True, capture_output=True, text=True, env=git | {"GIT_CONFIG_VALUE_0": "*"}
    ).stdout
    pins = {pin.digest for pin in source.versions.values()}
    assert {pin for pin in pins if pin not in answer} == set()
