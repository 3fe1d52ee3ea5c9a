"""Steps on a disk that harms their results or the image that they start from."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from sifwright.catalog.load_catalog import load_catalog
from sifwright.errors import BuildError
from sifwright.images.sif.fingerprint import Digests
from sifwright.images.sif.write_sif import PartitionError
from sifwright.make_image.cache.store import Store
from sifwright.make_image.pack_layers.pack import LISTING, SQUASHFS, PackedLayer
from sifwright.make_image.resolve_request.base_image import base_image_of
from sifwright.make_image.resolve_request.output_parser import OutputParser
from sifwright.make_image.resolve_request.recorded_inputs import Inputs
from sifwright.make_image.run_steps import apptainer_engine, step_life
from sifwright.make_image.run_steps.apptainer_engine import ApptainerSteps
from sifwright.make_image.run_steps.step_engine import Artifact, run_steps
from sifwright.make_image.run_steps.step_keys import CachedSteps, step_key
from sifwright.make_image.run_steps.step_life import StepResults
from sifwright.plan.resolve import resolve
from sifwright.render.singularity_metadata import LABELS
from sifwright.system import digest_cache
from sifwright.system.progress import QuietProgress, Timer
from tests.unit.stores import spoil

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sifwright.make_image.cache.store import CacheEntry
    from sifwright.make_image.resolve_request.build_request import Layout
    from sifwright.make_image.run_steps.run_in_apptainer import Sandbox
    from sifwright.plan.model import Plan

LAYERS = ("base", "tool", "extra")
DIGESTS = Digests(parts=(), rest="")
FIX = "Check the disk, or choose another folder with SIFWRIGHT_CACHE."


class Ground:
    """A stand-in for a sandbox, which notes the steps that ran."""

    def __init__(self, folder: Path) -> None:
        self.temporary, self.owners = folder / "work", folder / "owners"
        self.watcher = OutputParser(timer=Timer(QuietProgress()), fix="")
        self.ran: list[int] = []

    def run(self, below: Sequence[CacheEntry], workdir: Path, **_: object) -> Any:
        self.ran.append(len(below))
        labels = workdir / LABELS.lstrip("/")
        labels.parent.mkdir(parents=True)
        labels.write_text("{}")
        return SimpleNamespace(changes=workdir, tree=workdir, kept={})

    def remove_tree(self) -> None:
        """Do nothing: there is no tree."""


def pack(_changes: Path, folder: Path, *_: object, **__: object) -> PackedLayer:
    (folder / SQUASHFS).write_text("packed")
    (folder / LISTING).write_text("listing")
    return PackedLayer(
        squashfs=folder / SQUASHFS,
        listing=folder / LISTING,
        entries=1,
        bytes=1,
        capabilities=False,
        doubts="",
    )


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "base.sif"
    path.write_bytes(b"good")
    return path


@pytest.fixture
def plan(project: Path, base: Path) -> Plan:
    """Return the plan of the small image, on a SIF."""
    path = project / "defs" / "layers" / "base" / "layer.yaml"
    options, _, _ = path.read_text().partition("bootstrap:")
    path.write_text(f"{options}bootstrap:\n  Bootstrap: localimage\n  From: {base}\n")
    return resolve(load_catalog(project / "defs", project), "here", "small", [])


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SIFWRIGHT_IDS", "many")
    monkeypatch.setattr(step_life, "pack", pack)
    monkeypatch.setattr(apptainer_engine, "assemble", lambda *_: DIGESTS)
    return Ground(tmp_path)


def made_by(plan: Plan, ground: Ground, layout: Layout = "layered") -> ApptainerSteps:
    """Return the engine; joining a flat image needs whole results."""
    ground.temporary.mkdir(exist_ok=True)
    base = base_image_of(plan)
    inputs = Inputs.recorded(base, ground.temporary)
    context: Any = SimpleNamespace(
        plan=plan,
        base=base,
        header={},
        log=ground.temporary / "log",
        watcher=ground.watcher,
        work_dir=ground.temporary,
        staging=ground.temporary,
        definition="",
        options=SimpleNamespace(layout=layout, epoch=0),
    )
    runner = StepResults(
        context=context,
        cached=CachedSteps.of(plan.site, inputs, Store.open()),
        sandbox=cast("Sandbox", ground),
        leases=ExitStack(),
    )
    apptainer: Any = SimpleNamespace(
        product="apptainer", version="1.4.5", compression=lambda wanted: wanted
    )
    return ApptainerSteps(context=context, apptainer=apptainer, step_results=runner)


def assembled(engine: ApptainerSteps) -> Artifact:
    return run_steps(engine, 3, engine.finish)


def harm(number: int) -> None:
    """Change a byte of the result of that step, if it is there."""
    store = Store.open()
    for entry in store.entries():
        if entry.manifest["layer"] == LAYERS[number]:
            spoil(entry.file(SQUASHFS), b"pAcked")


def test_a_step_on_another_result_has_another_key(plan: Plan) -> None:
    """Take another key if the layers below have the same ids and other bytes, as after updates."""
    step = plan.steps[1]
    assert step_key(step, {}, "sha256:1") == step_key(step, {}, "sha256:1")
    assert step_key(step, {}, "sha256:1") != step_key(step, {}, "sha256:2")


def test_a_result_damaged_once_is_made_again(plan: Plan, ground: Ground) -> None:
    assembled(made_by(plan, ground))
    assert ground.ran == [0, 1, 2]
    harm(1)
    artifact = assembled(made_by(plan, ground, "flat"))
    assert ground.ran == [0, 1, 2, 1]
    assert len(set(artifact.keys)) == len(LAYERS)


def test_a_step_that_another_build_made_is_cached(
    plan: Plan, ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wait for the build that has the claim of the first step."""
    (tmp_path / "second").mkdir()
    first, second = made_by(plan, ground), made_by(plan, Ground(tmp_path / "second"))
    held, told = threading.Event(), threading.Event()

    def slow(*arguments: Any, **options: Any) -> PackedLayer:
        held.set()
        assert told.wait(60)
        return pack(*arguments, **options)

    monkeypatch.setattr(step_life, "pack", slow)
    timer = second.context.watcher.timer
    monkeypatch.setattr(timer.progress, "note", lambda _line: told.set())
    with ThreadPoolExecutor() as pool:
        other = pool.submit(assembled, first)
        assert held.wait(60)
        second.step_results.result(0, [])
        other.result()
    assert [step["state"] for step in timer.timeline] == ["cached"]
    assert first.context.watcher.timer.timeline[0]["state"] == "done"


def test_a_build_says_that_a_cached_step_was_dropped(plan: Plan, ground: Ground) -> None:
    assembled(made_by(plan, ground))
    harm(1)
    results: list[str] = []
    context: Any = SimpleNamespace(
        options=SimpleNamespace(cached=True),
        watcher=SimpleNamespace(progress=SimpleNamespace(note=results.append)),
    )
    with apptainer_engine._open_store(context) as store:  # noqa: SLF001
        assert [store.get(key) for key in store.all_keys()].count(None) == 1
    (line,) = results
    assert "was dropped" in line


def test_a_result_damaged_each_time_ends_the_build(
    plan: Plan, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Use a disk that harms every result of the first step."""
    real = Store.put

    def put(
        self: Store, key: str, folder: Path, facts: Mapping[str, Any]
    ) -> tuple[CacheEntry, bool]:
        assert len(ground.ran) < 10, "it would never end"
        stored = real(self, key, folder, facts)
        harm(0)
        return stored

    monkeypatch.setattr(Store, "put", put)
    # Each step takes hours.
    monkeypatch.setattr(step_life, "_MOMENT", 0.0)
    with pytest.raises(BuildError, match=r"what layer 'base' made was damaged twice") as caught:
        assembled(made_by(plan, ground, "flat"))
    assert ground.ran == [0, 1, 0, 1]
    assert caught.value.problems[0].fix == FIX
    assert re.search(r"/cache/steps-1/entries/[0-9a-f]{64}$", caught.value.problems[0].where)


def test_the_same_while_it_is_put_together(
    plan: Plan, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def assemble(_task: object, results: Sequence[CacheEntry], *_: object) -> str:
        tried.append(len(results))
        assert len(tried) < 5, "it would never end"
        harm(2)
        raise PartitionError(results[2].file(SQUASHFS), "has another sha256")

    monkeypatch.setattr(apptainer_engine, "assemble", assemble)
    with pytest.raises(BuildError, match=r"what layer 'extra' made was damaged twice"):
        assembled(made_by(plan, ground))
    assert tried == [3, 3]


def test_a_base_that_the_disk_changed_is_noticed(
    plan: Plan, ground: Ground, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read the file: inode, size and times are unchanged, so its digest is remembered."""
    monkeypatch.setattr(digest_cache, "identity", lambda _status: "as if nothing had touched it")
    making = made_by(plan, ground)
    base.write_bytes(b"gOod")
    expected = r"base\.sif: was changed while the image was built from it"
    with pytest.raises(BuildError, match=expected):
        run_steps(making, 3, list)
    assert (ground.ran, Store.open().all_keys()) == ([0], [])
    # The changed base counts as another one once its digest is read again.
    digest_cache._digest.cache_clear()  # noqa: SLF001
    assert len(run_steps(made_by(plan, ground), 3, list)) == 3
