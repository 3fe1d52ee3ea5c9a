"""The forecast of `plan`, against a cache as builds leave it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from sifwright.catalog.load_catalog import load_catalog
from sifwright.errors import MachineError
from sifwright.host.network import registry
from sifwright.make_image.forecast.disk_needs import DiskNeeds
from sifwright.make_image.forecast.forecast import OWN, estimate_disk_needs, forecast_steps
from sifwright.make_image.resolve_request import first_use
from sifwright.make_image.resolve_request.base_image import base_image_of
from sifwright.make_image.resolve_request.recorded_inputs import Inputs
from sifwright.plan.model import StepSource
from sifwright.plan.resolve import resolve
from sifwright.plan.source_digest import ARCHIVE, SourceDigest
from sifwright.system import cache_folder
from tests.unit.built import ENTRIES, SECONDS, UNPACKED, build

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.catalog.model import Catalog
    from sifwright.plan.model import Plan
    from tests.unit.conftest import Cli

DIGEST = "sha256:" + "1" * 64
# Bytes of one step below the temporary folder.
TREE = UNPACKED + 4096 * ENTRIES


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SIFWRIGHT_IDS", "many")
    return tmp_path / "cache"


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "build" / "here" / "small"


def _plan(project: Path, *, image: str = "small") -> Plan:
    return resolve(load_catalog(project / "defs", project), "here", image, [])


def _edit(project: Path, layer: str) -> None:
    with (project / "defs" / "layers" / layer / "install.sh").open("a") as file:
        file.write("# edited\n")


def _on_registry(project: Path, name: str = "registry.example/group/base:1.0") -> Plan:
    """Return the small image on an image of a registry."""
    path = project / "defs" / "layers" / "base" / "layer.yaml"
    options, _, _ = path.read_text().partition("bootstrap:")
    path.write_text(f"{options}bootstrap:\n  Bootstrap: docker\n  From: {name}\n")
    return _plan(project)


def _states(plan: Plan, output: Path) -> dict[str, str]:
    steps = forecast_steps(plan, output)
    return {step.layer: step.why.text if step.why else "cached" for step in steps}


@pytest.mark.parametrize("edited", ["tool", "extra"])
def test_space_after_files_with_capabilities(project: Path, output: Path, edited: str) -> None:
    """Unpack all below for a step on them; it lies there until the end of the build."""
    build(_plan(project), output, capable=["tool"])
    _edit(project, edited)
    forecasts = forecast_steps(_plan(project), output)
    # An edited layer is expected to have capabilities again.
    first = 1 if edited == "tool" else 2
    assert estimate_disk_needs(forecasts, first).temporary == OWN + (1 + 2 + 3) * TREE
    # Nothing runs on them: a shell would.
    assert estimate_disk_needs(forecasts[:2], 2).temporary == 0
    entered = estimate_disk_needs(forecasts[:2], 2, entered=True)
    assert entered.temporary == OWN + (1 + 2) * TREE
    assert estimate_disk_needs(forecasts[:2], 1).temporary == OWN + 2 * TREE
    assert estimate_disk_needs(forecasts[:1], 1, entered=True).temporary == OWN


def test_space_of_a_first_build(project: Path, output: Path) -> None:
    """Take the layers' own sizes, packed half of them. All of it lies in one tree."""
    for layer, text in (("base", "disk_mb: 300\n"), ("tool", "disk_mb: 100\n")):
        with (project / "defs" / "layers" / layer / "layer.yaml").open("a") as file:
            file.write(text)
    forecasts = forecast_steps(_plan(project), output)
    assert set(_states(_plan(project), output).values()) == {"it was never built here"}
    m = 10**6
    assert estimate_disk_needs(forecasts, 0) == DiskNeeds(
        temporary=401 * m, cache=200 * m, output=200 * m, temporary_files=1600
    )
    uncached = estimate_disk_needs(forecasts, 0, "uncached")
    assert (uncached.temporary, uncached.cache, uncached.output) == (601 * m, 0, 200 * m)
    by_engine = estimate_disk_needs(forecasts, 0, "engine")
    assert (by_engine.temporary, by_engine.cache, by_engine.output) == (401 * m, 0, 200 * m)


def test_a_cache_that_a_build_would_refuse_is_not_believed(
    project: Path, output: Path, run_cli: Cli
) -> None:
    build(_plan(project), output)
    cache_folder.root().chmod(0o775)
    planned = run_cli("--project", project, "plan", "here", "small")
    assert planned.code == MachineError.exit_code
    assert "other users can write to the step cache (mode 0775)" in planned.err
    assert "every step is cached" not in planned.out


def test_sizes_that_are_facts(real: Catalog, output: Path) -> None:
    """Take a CUDA wheel for several times a CPU wheel, for any size that the layer declares."""
    plan = resolve(real, "local", "pytorch", [])
    cuda = replace(plan, facts={**plan.facts, "torch-mb": "7500"})
    sizes = [
        estimate_disk_needs(forecast_steps(variant, output), 0).temporary
        for variant in (plan, cuda)
    ]
    assert sizes[0] > 1500 * 10**6
    assert sizes[1] - sizes[0] == (7500 - int(plan.facts["torch-mb"])) * 10**6


def test_another_variant_is_not_estimated_by_the_last_result(project: Path, output: Path) -> None:
    """Ignore the result of wheels for CPUs: its size says nothing about CUDA's."""
    header = project / "defs" / "layers" / "tool" / "layer.yaml"
    with header.open("a") as file:
        file.write("disk_mb: 700\n")
    build(_plan(project), output)
    assert _unpacked(project, output) == 2 * TREE
    _edit(project, "tool")
    assert _unpacked(project, output) == 2 * TREE
    other = resolve(load_catalog(project / "defs", project), "here", "small", ["tool.text=other"])
    tool = forecast_steps(other, output)[1]
    assert (tool.unpacked, tool.packed) == (700 * 10**6, 350 * 10**6)


def _unpacked(project: Path, output: Path) -> int:
    return forecast_steps(_plan(project), output)[1].unpacked


def test_wheels_are_kept_as_well(real: Catalog, output: Path) -> None:
    forecasts = forecast_steps(resolve(real, "local", "pytorch", []), output)
    kept = {step.layer: step.downloads for step in forecasts if step.downloads}
    packed = {step.layer: step.packed for step in forecasts}
    assert "base-debian" not in kept
    assert kept["pytorch-wheel"] == packed["pytorch-wheel"]
    wanted = sum(packed.values()) + sum(kept.values())
    assert estimate_disk_needs(forecasts, 0).cache == wanted


def test_a_compiled_layer_takes_more_than_it_leaves(project: Path, output: Path) -> None:
    url = "https://git.example/thing"
    source = StepSource(name="thing", kind="git", url=url, ref="v1", version="1", digest="a")
    plan = _plan(project)
    *others, last = plan.steps
    layer = replace(last.layer, disk_mb=700)
    plan = replace(plan, steps=(*others, replace(last, layer=layer, sources=(source,))))
    build(plan, output)
    assert forecast_steps(plan, output)[-1].unpacked == 700 * 10**6


def test_a_result_on_another_one(project: Path, output: Path) -> None:
    """Run the step again: its layer is unchanged, but another image made the result below."""
    plan = _plan(project)
    build(plan, output)
    _edit(project, "base")
    build(_plan(project), output)
    # The edit is taken back, and the second result lost: the third is not of this stack.
    results = build(plan, output)
    assert set(_states(plan, output).values()) == {"cached"}
    shutil.rmtree(results[1].folder)
    states = _states(plan, output)
    assert states["tool"] == "it was not built on this result of base yet"
    assert states["extra"] == "after tool"


def test_sources_that_were_others(project: Path, output: Path) -> None:
    plan = _plan(project)
    plan = replace(plan, steps=plan.steps[:1])
    used = SourceDigest(layer="base", source="thing", ref="main", digest="a")
    build(plan, output, used=[used])
    output.mkdir(parents=True)
    (output / first_use.FILE).write_text(json.dumps({used.key: "b"}))
    message = "its sources are others than those of its first use here"
    assert _states(plan, output) == {"base": message}


def test_an_image_of_a_registry_in_a_new_folder(project: Path, output: Path) -> None:
    """Take the digest of the last build anywhere, as no registry is asked."""
    plan = _on_registry(project)
    build(plan, output, digest=DIGEST)
    assert set(_states(plan, output).values()) == {"cached"}
    _edit(project, "extra")
    states = _states(_on_registry(project), output)
    assert [state == "cached" for state in states.values()] == [True, True, False]
    assert states["extra"].startswith("install.sh: ")


def test_another_image_of_a_registry(project: Path, output: Path) -> None:
    build(_on_registry(project), output, digest=DIGEST)
    output.mkdir(parents=True)
    plan = _on_registry(project)
    key = Inputs.recorded(base_image_of(plan), output).used[0].key
    (output / first_use.FILE).write_text(json.dumps({key: "sha256:" + "2" * 64}))
    assert _states(plan, output)["base"] == "base image: sha256:11111 -> sha256:22222"


def _answer(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(registry, "digest", Mock(side_effect=error))


def test_a_registry_that_cannot_be_reached(
    project: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Take the last digest; without an earlier build, refuse."""
    notes: list[str] = []
    plan = _on_registry(project)
    _answer(monkeypatch, registry.RegistryUnreachableError("no route"))
    with pytest.raises(MachineError, match="no route\n    Check the network and proxies"):
        Inputs.recorded(base_image_of(plan), output).with_current_digest(notes.append)
    build(plan, output, digest=DIGEST)
    assert (
        Inputs.recorded(base_image_of(plan), output).with_current_digest(notes.append).digest
        == DIGEST
    )
    assert notes == [f"registry.example/group/base:1.0 is taken as it was, {DIGEST}: no route"]


@pytest.mark.parametrize(
    ("answer", "fix"),
    [(("HTTP 403", "Log in."), "Log in."), (("there is no 1.0",), "Name an image that is there")],
)
def test_a_registry_that_refuses_says_what_to_do(
    project: Path, output: Path, monkeypatch: pytest.MonkeyPatch, answer: tuple[str, ...], fix: str
) -> None:
    """Refuse, although the digest of an earlier build is known."""
    plan = _on_registry(project)
    build(plan, output, digest=DIGEST)
    _answer(monkeypatch, registry.RegistryError(*answer))
    with pytest.raises(MachineError, match=rf"layer '.*', registry.*: {answer[0]}\n    {fix}"):
        Inputs.recorded(base_image_of(plan), output).with_current_digest(lambda _: None)


def test_a_digest_is_not_asked_for(
    project: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answer(monkeypatch, AssertionError("it was asked"))
    plan = _on_registry(project, f"registry.example/group/base@{DIGEST}")
    assert (
        Inputs.recorded(base_image_of(plan), output).with_current_digest(lambda _: None).digest
        == DIGEST
    )
    assert Inputs.recorded(base_image_of(plan), output).digest == DIGEST


def test_plan_says_it(project: Path, tmp_path: Path, run_cli: Cli) -> None:
    output = tmp_path / "build"
    words: list[str | Path] = ["--project", project, "plan", "here", "--output", output]
    results = build(_plan(project), output / "here" / "small")
    assert "every step is cached\nneeds 1 MB at the output\n" in run_cli(*words).out
    _edit(project, "tool")
    told = json.loads(run_cli(*words, "--json").out)
    assert told["id"] == _plan(project).id
    future = told["forecast"]
    assert (future["will_run"], future["seconds"]) == (2, 5 * SECONDS)
    assert future["bytes"] == sum(entry.bytes for entry in results[1:])
    # Each step lies below the temporary folder alone, and all that run go to the cache.
    assert DiskNeeds(**future["needs"]) == DiskNeeds(
        temporary=OWN + 3 * TREE,
        cache=future["bytes"],
        output=sum(entry.bytes for entry in results),
        temporary_files=3 * ENTRIES,
    )
    steps = future["steps"]
    assert [step["seconds"] for step in steps] == [n * SECONDS for n in (1, 2, 3)]
    assert [step["state"] for step in steps] == ["cached", "will run", "will run"]
    why = steps[1]["why"]
    assert (steps[0]["why"], why["input"]) == (None, "install.sh")
    assert why["text"] == f"install.sh: {why['old'][:12]} -> {why['new'][:12]}"
    after = {"text": "after tool", "input": "", "old": None, "new": None, "after": "tool"}
    assert steps[2]["why"] == after
    last = run_cli(*words).out.splitlines()[-1]
    assert last.startswith("needs 2 MB below ")
    assert last.endswith(", 1 MB in the cache, 1 MB at the output")


@pytest.mark.parametrize(("days", "is_old"), [(6, False), (9, True)])
def test_old_packages_are_named(
    project: Path, output: Path, run_cli: Cli, days: int, *, is_old: bool
) -> None:
    """Name the newest archive of a cached step's; the record of sources has none."""
    plan = _plan(project)
    dates = [datetime.now(UTC) - timedelta(days=many) for many in (days, 400)]
    archives = [
        SourceDigest(layer="end", source=ARCHIVE, ref=suite, digest=f"{date:%Y-%m-%dT%H:%M:%SZ}")
        for suite, date in zip(("x-security", "x"), dates, strict=True)
    ]
    build(plan, output, used=archives)
    printed = run_cli("--project", project, "plan", "here", "--output", output.parents[1]).out
    line = (
        f" has the packages of {dates[0]:%Y-%m-%d}, {days} days ago; 'sifwright build --no-cache'"
    )
    assert (line in printed) == is_old
    assert ("days ago" in printed) == is_old
    assert json.loads(first_use.text({}, archives)) == {}
