"""The files of a lock: taken from the machine's indexes and archives, or refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import BuildError, UsageError
from sifwright.host.network import pip_settings
from sifwright.make_image.downloads.fetch_file import open_store
from sifwright.make_image.lock import collect_files, deb_repository
from sifwright.make_image.lock.update_lock import is_of_base, update_lock
from sifwright.make_image.lock_format.lock_file import Archive, Wheel
from sifwright.make_image.resolve_request.build_request import BuildOptions, request_build
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from tests.servers import sha256
from tests.unit.locks import LOCK, write_debs
from tests.unit.wheels import Index, make_wheel, serve_index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sifwright.make_image.lock_format.lock_file import Lock
    from sifwright.make_image.resolve_request.build_request import BuildRequest
    from sifwright.plan.model import Plan

TOY = "toy-1.0-py3-none-any.whl"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """Serve the machine's index with two versions of a wheel, its archive, and an empty cache."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    debs = write_debs(tmp_path / "archive", "toy", "other")
    archive = Archive(address="debian", suite="bookworm", components="main", date="")
    deb_repository.write(tmp_path / "archive", debs, [archive], "x86_64", 1_000_000)
    mirrors = tmp_path / "mirrors.yaml"
    mirrors.write_text(json.dumps({"apt": {"debian": str(tmp_path / "archive")}}))
    monkeypatch.setenv("SIFWRIGHT_MIRRORS", str(mirrors))
    with serve_index() as served:
        served.add("toy", "1.0")
        served.add("toy", "1.5")
        settings = {"index-url": served.url}
        monkeypatch.setattr(pip_settings, "settings", lambda: settings)
        yield served


@pytest.fixture
def lock(index: Index, tmp_path: Path) -> Lock:
    assert index.url
    wheel = Wheel(name="toy", version="1.0", file=TOY, sha256=sha256(make_wheel("toy")))
    path = next((tmp_path / "archive" / "pool").glob("toy_*"))
    deb = replace(
        LOCK.debs[0], path=f"pool/{path.name}", sha256=sha256(path.read_bytes()), version="1~rc1"
    )
    return replace(LOCK, debs=(deb,), wheels=(wheel,), sources=())


@pytest.fixture
def request_(plan: Plan, tmp_path: Path) -> BuildRequest:
    plan = replace(plan, facts={"python": "3.11"})
    output = ImageFolder(folder=tmp_path / "out", name="small")
    return request_build(plan, output, BuildOptions(layout="flat"))


def collected(lock: Lock, request_: BuildRequest, *, offline: bool = False) -> set[str]:
    with open_store().folder() as folder:
        collect_files.collect(lock, request_, open_store(), folder, offline=offline)
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_files_come_from_the_machine_and_then_from_the_cache(
    lock: Lock, request_: BuildRequest, index: Index
) -> None:
    files = {"repository/pool/toy_1_all.deb", f"wheels/{TOY}"}
    assert collected(lock, request_) == files
    index.files.clear()
    assert collected(lock, request_, offline=True) == files


def test_files_that_are_others_now_are_named(lock: Lock, request_: BuildRequest) -> None:
    (wheel,), (deb,) = lock.wheels, lock.debs
    lock = replace(
        lock, wheels=(replace(wheel, sha256="b" * 64),), debs=(replace(deb, sha256="c" * 64),)
    )
    with pytest.raises(BuildError) as refused:
        collected(lock, request_)
    there = sha256(make_wheel("toy"))
    assert f"{TOY}: it is not there as locked: its sha256 is {there}, not {'b' * 64}" in str(
        refused.value
    )
    assert f"its sha256 is {deb.sha256}, not {'c' * 64}" in str(refused.value)
    assert len(refused.value.problems) == 2


def test_without_a_network_what_is_missing_is_named(lock: Lock, request_: BuildRequest) -> None:
    with pytest.raises(BuildError, match="no network is used") as refused:
        collected(lock, request_, offline=True)
    assert len(refused.value.problems) == 2


def test_only_named_packages_are_updated(lock: Lock, request_: BuildRequest, index: Index) -> None:
    plan = request_.plan
    newer = update_lock(lock, plan, ["toy"])
    assert [(deb.name, deb.version) for deb in newer.debs] == [("toy", "1")]
    assert [(wheel.name, wheel.version) for wheel in newer.wheels] == [("toy", "1.5")]
    assert newer.wheels[0].url == f"{index.url}/toy/toy-1.5-py3-none-any.whl"
    only = update_lock(lock, plan, ["debian"])
    assert (only.debs, only.wheels) == (newer.debs, lock.wheels)
    with pytest.raises(UsageError, match="the lock has no package 'tyo'"):
        update_lock(lock, plan, ["tyo"])
    with pytest.raises(UsageError, match="'code' is a source: layer 'tool' has its version"):
        update_lock(replace(lock, sources=LOCK.sources), plan, ["code"])


def test_another_base_means_that_all_steps_run_again(lock: Lock) -> None:
    of_registry = replace(lock, base={"bootstrap": "docker", "digest": "sha256:1"})
    assert is_of_base(of_registry, ["base"])
    assert not is_of_base(of_registry, ["toy"])
    with pytest.raises(UsageError, match="'base' stands alone"):
        is_of_base(of_registry, ["base", "toy"])
    with pytest.raises(UsageError, match="starts from no image of a registry"):
        is_of_base(lock, ["base"])
