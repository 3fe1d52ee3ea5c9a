"""Packages of steps: downloaded once, by real builds with the image's own pip."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from sifwright.host.network import pip_settings
from sifwright.make_image.cache.store import Store
from sifwright.make_image.downloads.fetch_file import open_store
from tests.checkouts import copy_project
from tests.system.apptainer.toys import Toy, succeeded
from tests.unit.wheels import serve_index

if TYPE_CHECKING:
    from pathlib import Path

LAYERS = ("base-debian", "python-venv", "wheels")
PACKAGES = "/opt/venv/lib/python3*/site-packages"


@pytest.fixture
def toy(engine: str, tmp_path: Path) -> Toy:
    """Make an image that installs a package, on the first layers of the image of site local."""
    assert engine
    toy = Toy(folder=copy_project(tmp_path / "project", toy=LAYERS))
    downloads = [{"what": "the toy", "pip": "toy==1.0"}]
    toy.layer("wheels", "pip install toy==1.0\n", header={"downloads": downloads})
    return toy


def forget(store: Store, **known: set[str]) -> None:
    """Drop entries from the cache by what their manifests say."""
    ((name, values),) = known.items()
    for entry in store.entries():
        if entry.manifest[name] in values:
            shutil.rmtree(entry.folder)


@pytest.mark.build
def test_a_step_that_runs_again_downloads_nothing(engine: str, toy: Toy) -> None:
    with serve_index() as index:
        wheels = {index.add("toy", "1.0", ("part",)), index.add("part")}
        others = pip_settings.settings().get("extra-index-url", "")
        env = {**os.environ, "PIP_EXTRA_INDEX_URL": f"{others} {index.url}".strip()}
        # Remove wheels of an earlier run of this test.
        forget(open_store(), name=wheels)
        for _ in range(2):
            forget(Store.open(), layer={"wheels"})
            succeeded(toy.build("--force", env=env))
            log = (toy.output / "build.log").read_text()
            assert {f"sifwright: fetched {name}" for name in wheels} <= set(log.splitlines())
            # Once by us, never by the image's pip.
            assert sorted(index.wheels) == sorted(wheels)
    script = f"cat {PACKAGES}/toy.py; ls -d {PACKAGES}/toy-1.0.dist-info/*; ls -A / /root"
    output = toy.execute(engine, "bash", "-c", script).split("\n", 1)
    assert output[0] == "version = '1.0'"
    names = {line.rpartition("/")[2] for line in output[1].splitlines()}
    assert {"INSTALLER", "RECORD", "REQUESTED"} <= names
    assert names.isdisjoint({"direct_url.json", ".sifwright", ".cache"})
