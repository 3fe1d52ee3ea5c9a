"""All that a machine lacks for a build, of every kind, is reported at once."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.version import Version

from sifwright.errors import MachineError, Problem
from sifwright.host.engines.apptainer import Apptainer
from sifwright.make_image.check_machine import engine_checks, host_checks, network_checks, preflight
from sifwright.make_image.check_machine.planned_build import PlannedBuild
from sifwright.plan.resolve import resolve
from sifwright.system import ids, user_namespace
from tests.catalogs import REAL


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlannedBuild:
    """Make a build at a site with large images, on a machine without programs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(host_checks, "search_path", lambda: str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
    plan = resolve(REAL, "local", "pytorch", [])
    return preflight.cold_build(plan, tmp_path / "out")


def _lacking(build: PlannedBuild) -> MachineError:
    with pytest.raises(MachineError) as caught:
        preflight.require(build, print)
    return caught.value


def test_disk_programs_and_network_are_said_at_once(
    build: PlannedBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    offline = Problem(what="no server answers")
    monkeypatch.setattr(network_checks, "problems", lambda *_: iter([offline]))
    message = str(_lacking(build))
    for text in ("neither 'apptainer'", "'mksquashfs' is missing", "are needed", "no server"):
        assert text in message


def test_a_build_that_downloads_nothing_asks_no_server(
    build: PlannedBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, ...]] = []

    def ask(*subject: object) -> list[Problem]:
        asked.append(subject)
        return []

    monkeypatch.setattr(network_checks, "problems", ask)
    _lacking(replace(build, first=len(build.plan.steps)))
    ((steps, _, _, image),) = asked
    assert (steps, image) == ((), None)


@pytest.mark.parametrize("has_namespace", [True, False])
def test_another_group_than_the_accounts(
    build: PlannedBuild, monkeypatch: pytest.MonkeyPatch, *, has_namespace: bool
) -> None:
    """Note it after newgrp or sg; some newgidmap take it (GRANT_AUX_GROUP_SUBIDS)."""
    monkeypatch.setenv(ids.VARIABLE, "many")
    monkeypatch.setattr(ids, "needs_fakeroot", lambda: True)
    monkeypatch.setattr(ids, "problems", lambda _: iter(()))
    monkeypatch.setattr("os.getegid", lambda: 4242)
    monkeypatch.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_gid=4343))
    reason = None if has_namespace else Problem(what="newgidmap failed")
    monkeypatch.setattr(user_namespace, "problem", lambda: reason)
    results = [problem for problem in host_checks.problems(build.plan) if "group" in problem.what]
    message = "your group is '4242', that of your account is '4343'; newgidmap refuses others"
    fix = "Run newgrp 4343, or build with one id (SIFWRIGHT_IDS=one)."
    assert [str(problem) for problem in results] == (not has_namespace) * [f"{message}\n    {fix}"]


@pytest.mark.parametrize(
    ("first", "user_ids", "count"), [(0, "many", 1), (1, "many", 0), (1, "one", 1)]
)
def test_a_temporary_folder_without_execution(
    monkeypatch: pytest.MonkeyPatch, first: int, user_ids: str, count: int
) -> None:
    """Refuse it on cached steps, whose programs run in an overlay; with one id they never do."""
    monkeypatch.setenv(ids.VARIABLE, user_ids)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_NOEXEC))
    results = [problem.what for problem in host_checks.mount_problems(first)]
    assert results == count * [
        "it is mounted noexec, and a step runs the programs of its image there"
    ]


def test_a_cache_that_others_can_write(build: PlannedBuild, cache: Path) -> None:
    cache.chmod(0o775)
    build = replace(build, first=len(build.plan.steps))
    message = "other users can write to the step cache (mode 0775), so into images, too"
    assert message in [problem.what for problem in preflight.findings(build)]
    without = replace(build, is_cached=False)
    assert message not in [problem.what for problem in preflight.findings(without)]


@pytest.mark.parametrize(
    ("product", "version", "mode", "hole"),
    [
        ("apptainer", "1.5.0", 0o4755, "CVE-2026-48785"),
        ("apptainer", "1.5.0", 0o755, ""),
        ("apptainer", "1.5.1", 0o4755, ""),
        ("singularity-ce", "4.4.1", 0o4755, "CVE-2026-47215"),
        ("singularity-ce", "4.4.2", 0o4755, ""),
    ],
)
def test_a_known_hole_of_a_setuid_engine_is_a_note(
    tmp_path: Path, product: str, version: str, mode: int, hole: str
) -> None:
    starter = tmp_path / product.removesuffix("-ce") / "bin" / "starter-suid"
    starter.parent.mkdir(parents=True)
    starter.touch()
    starter.chmod(mode)
    problems = _engine_problems(tmp_path, "$2 = LIBEXECDIR", product, version)
    assert [hole in note.what and note.severity for note in problems] == ["note"] * bool(hole)


def _engine_problems(folder: Path, asked: str, product: str, version: str) -> list[Problem]:
    """Check an engine that answers this question with the folder."""
    program = folder / "engine"
    program.write_text(f"#!/bin/sh\n[ {asked} ] && echo {folder}\n")
    program.chmod(0o755)
    engine = Apptainer(
        program=str(program),
        product=product,
        version=Version(version),
        takes_squashfs_arguments=True,
    )
    return list(engine_checks.problems(engine))


@pytest.mark.parametrize(("text", "count"), [("activated = true", 1), ("activated = false", 0)])
def test_an_active_control_list_is_a_note(tmp_path: Path, text: str, count: int) -> None:
    (tmp_path / "ecl.toml").write_text(f"{text}\n")
    problems = _engine_problems(tmp_path, "$1 = buildcfg", "apptainer", "1.6.0")
    assert ["ecl.toml" in note.what and note.severity for note in problems] == ["note"] * count
