"""What steps do with what a disk makes of their results and of the image that they start from."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from sifwright import catalog, digests, incremental, steps
from sifwright.errors import BuildError
from sifwright.inputs import Inputs
from sifwright.plan import resolve
from sifwright.progress import QuietProgress, Timer
from sifwright.render.metadata import LABELS
from sifwright.sif.writing import PartitionError
from sifwright.squash.pack import LISTING, SQUASHFS, Packed
from sifwright.steps import Steps
from sifwright.store.store import Store
from sifwright.watcher import Watcher
from tests.core.stores import spoil

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sifwright.model import Plan
    from sifwright.sandbox import Sandbox
    from sifwright.store.store import Entry
    from sifwright.task import Task

LAYERS = ("base", "tool", "extra")
FIX = "Check the disk, or choose another folder with SIFWRIGHT_CACHE."


class Ground:
    """Stands in for a sandbox: notes which steps ran."""

    mirror = ""

    def __init__(self, folder: Path) -> None:
        self.temporary, self.log = folder / "work", folder / "log"
        self.watcher = Watcher(timer=Timer(QuietProgress()), fix="")
        self.ran: list[int] = []

    def run(self, number: int, _below: Sequence[Entry], work: Path, **_: object) -> Any:
        self.ran.append(number)
        labels = work / LABELS.lstrip("/")
        labels.parent.mkdir(parents=True)
        labels.write_text("{}")
        return SimpleNamespace(changes=work, tree=work, kept={})

    def discard(self) -> None:
        """There is no tree."""


def pack(_changes: Path, made: Path, *_: object, **__: object) -> Packed:
    (made / SQUASHFS).write_text("packed")
    (made / LISTING).write_text("listing")
    return Packed(
        squashfs=made / SQUASHFS,
        listing=made / LISTING,
        entries=1,
        bytes=1,
        whiteouts=0,
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
    """The small image, on a SIF."""
    path = project / "defs" / "layers" / "base" / "layer.yaml"
    options, _, _ = path.read_text().partition("bootstrap:")
    path.write_text(f"{options}bootstrap:\n  Bootstrap: localimage\n  From: {base}\n")
    return resolve(catalog.load(project / "defs", project), "here", "small", [])


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(steps, "pack", pack)
    return Ground(tmp_path)


def made_by(plan: Plan, ground: Ground, *, reads_all: bool = False) -> Steps:
    store = Store.open()
    return Steps(
        plan=plan,
        cached=incremental.cached_steps(plan, Inputs(record={}), store),
        sandbox=cast("Sandbox", ground),
        compression="zstd",
        reads_all=reads_all,
    )


def harm(number: int) -> None:
    """Change a byte of the result of that step, if it is there."""
    store = Store.open()
    for entry in store.entries():
        if entry.manifest["layer"] == LAYERS[number]:
            spoil(entry.file(SQUASHFS), b"pAcked")


def test_what_is_damaged_once_is_made_again(plan: Plan, ground: Ground) -> None:
    with made_by(plan, ground).results() as results:
        assert ground.ran == [0, 1, 2]
    harm(1)
    with made_by(plan, ground, reads_all=True).results() as results:
        assert ground.ran == [0, 1, 2, 1]
    assert [entry.manifest["layer"] for entry in results] == list(LAYERS)


def test_what_is_damaged_each_time_ends_the_build(
    plan: Plan, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk makes something else of all that the first step makes."""
    real = Store.put

    def put(self: Store, key: str, made: Path, facts: Mapping[str, Any]) -> Entry:
        assert len(ground.ran) < 10, "it would never end"
        entry = real(self, key, made, facts)
        harm(0)
        return entry

    monkeypatch.setattr(Store, "put", put)
    # Each step takes hours.
    monkeypatch.setattr(steps, "_MOMENT", 0.0)
    with (
        pytest.raises(BuildError, match=r"what layer 'base' made was damaged twice") as caught,
        made_by(plan, ground, reads_all=True).results(),
    ):
        pass
    assert ground.ran == [0, 1, 0, 1]
    assert caught.value.problems[0].fix == FIX
    assert re.search(r"/cache/steps-1/entries/[0-9a-f]{64}$", caught.value.problems[0].where)


def test_the_same_while_it_is_put_together(
    plan: Plan, ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def assemble(_task: object, results: Sequence[Entry], *_: object) -> str:
        tried.append(len(results))
        assert len(tried) < 5, "it would never end"
        harm(2)
        raise PartitionError(results[2].file(SQUASHFS), "has another sha256")

    monkeypatch.setattr(incremental, "assemble", assemble)
    task = cast("Task", SimpleNamespace(plan=plan, watcher=ground.watcher))
    ground.temporary.mkdir()
    with pytest.raises(BuildError, match=r"what layer 'extra' made was damaged twice"):
        incremental._made(task, made_by(plan, ground), tmp_path)  # noqa: SLF001
    assert tried == [3, 3]


def test_a_base_that_the_disk_changed_is_noticed(
    plan: Plan, ground: Ground, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inode, size and times are what they were, so its digest is remembered."""
    monkeypatch.setattr(digests, "identity", lambda _status: "as if nothing had touched it")
    making = made_by(plan, ground)
    base.write_bytes(b"gOod")
    expected = r"base\.sif: was changed while the image was built from it"
    with pytest.raises(BuildError, match=expected), making.results():
        pass
    assert (ground.ran, Store.open().all_keys()) == ([0], [])
    # What is there by now is another base, and known as that.
    digests._digest.cache_clear()  # noqa: SLF001
    with made_by(plan, ground).results() as results:
        assert len(results) == 3
