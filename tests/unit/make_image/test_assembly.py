"""The same results of steps are the same SIF, bit for bit, for images of each vendor."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

import sifwright.make_image.attest.sbom  # noqa: F401  # another user may not be able to load it
from sifwright.catalog.model import LayerFile
from sifwright.images.sif import sif_file
from sifwright.make_image.assemble_sif.assemble import assemble
from sifwright.render.definition import definition
from tests.unit.conftest import MACHINE
from tests.unit.render.test_goldens import PLANS, SAMPLE
from tests.unit.sifs import squashfs_of
from tests.unit.stores import key_of, new_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.make_image.cache.store import CacheEntry, Store
    from sifwright.make_image.resolve_request.build_context import BuildContext
    from sifwright.make_image.resolve_request.build_request import Layout
    from sifwright.plan.model import Plan

_METADATA = {"labels": {"org.label-schema.schema-version": "1.0"}, "environment": ""}
_NOBODY = 65534
# Its forks are of a process with one thread; another user may not be able to read the checkout.
_CONTEXT = multiprocessing.get_context("forkserver")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder that other users may look into; restore the umask afterwards."""
    mask = os.umask(0o022)
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
    os.umask(mask)


def _results(store: Store, plan: Plan) -> list[CacheEntry]:
    """Make a small squashfs for every step."""
    results: list[CacheEntry] = []
    for number, step in enumerate(plan.steps):
        name = f"/opt/{step.layer.name}/file"
        file = LayerFile(path=name, data=step.id.encode() * 999, executable=False)
        facts = {
            "layer": step.layer.name,
            "below": results[-1].key if results else "",
            "made": f"2026-01-01T00:00:{number:02}+00:00",
            "folders": {"opt": 0o2775},
            "used": [],
            "metadata": _METADATA,
        }
        with store.folder() as staging:
            data = squashfs_of(file, compression=plan.site.compression)
            (staging / "layer.sqfs").write_bytes(data)
            key = key_of(f"{number} {step.id} {plan.site.compression}")
            results.append(store.put(key, staging, facts)[0])
    return results


@dataclass(frozen=True, kw_only=True)
class _Build:
    plan: Plan
    # Another user may not be able to read the checkout.
    definition: str
    results: list[CacheEntry]
    layout: Layout


def _assembled(build: _Build, folder: Path) -> str:
    workdir = folder / "work"
    for path in (folder / "made", workdir):
        path.mkdir(parents=True)
    target = folder / "made"
    task = SimpleNamespace(
        plan=build.plan,
        definition=build.definition,
        options=SimpleNamespace(layout=build.layout, epoch=0),
        staging=target,
        log=folder / "log",
        watcher=SimpleNamespace(fix=str),
    )
    digest = assemble(cast("BuildContext", task), build.results, workdir, lambda _: False)
    assert sif_file.partitions(target / "image.sif")
    return digest.fingerprint


def _somewhere_else(build: _Build, folder: Path, queue: object) -> None:
    """Assemble as another user with another umask, on one core, in another folder and time zone."""
    os.umask(0o007)
    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
    os.environ.update(TZ="Asia/Tokyo", LC_ALL="C", SOURCE_DATE_EPOCH="1")
    if os.geteuid() == 0:
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    os.chdir(folder)
    queue.put(_assembled(build, folder / "deeper" / "still"))  # type: ignore[attr-defined]


@pytest.mark.all
@pytest.mark.parametrize("layout", ["layered", "flat"])
def test_images_of_sites(folder: Path, layout: Layout) -> None:
    """Take one of each image and vendor."""
    store = new_store(folder / "store")
    for path in (folder / "store", folder / "store/entries"):
        path.chmod(0o755)
    digests, queue = set(), _CONTEXT.SimpleQueue()
    for site, name in SAMPLE:
        plan = PLANS[site, name]
        results = _results(store, plan)
        for result in results:
            result.folder.chmod(0o755)
        text = definition(plan, MACHINE)
        build = _Build(plan=plan, definition=text, results=results, layout=layout)
        os.umask(0o077)
        digest = _assembled(build, folder / "here")
        os.umask(0o022)
        (folder / "there").mkdir(mode=0o777)
        (folder / "there").chmod(0o777)
        child = _CONTEXT.Process(target=_somewhere_else, args=(build, folder / "there", queue))
        child.start()
        child.join()
        assert child.exitcode == 0
        assert queue.get() == digest, (site, name)
        digests.add(digest)
        for location in ("here", "there"):
            shutil.rmtree(folder / location)
    assert len(digests) == len(SAMPLE) >= 5
