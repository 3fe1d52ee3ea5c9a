"""`sifwright report --all`: the state of every image of every site."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sifwright.catalog.model import Catalog
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.plan.plan_file import plan_document
from sifwright.plan.resolve import resolve
from sifwright.report import fleet
from sifwright.report.fleet import ImageState, image_state
from tests.unit.conftest import GOOD, Cli

NOW = datetime(2026, 11, 24, tzinfo=UTC)


def _state(real: Catalog, folder: Path, *settings: str) -> ImageState:
    output = ImageFolder(folder=folder / "local/pytorch", name="pytorch")
    return image_state(output, lambda: resolve(real, "local", "pytorch", settings), NOW)


@pytest.fixture
def built(real: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the record of a build of three days ago, as if its image were there and whole."""
    monkeypatch.setattr(ImageFolder, "damage", lambda _self: "")
    plan = plan_document(resolve(real, "local", "pytorch", ()))
    record = {"built": "2026-11-21T00:00:00+00:00", "tested": "all", "sif_bytes": 5, "plan": plan}
    (tmp_path / "local/pytorch").mkdir(parents=True)
    (tmp_path / "local/pytorch/record.json").write_text(json.dumps(record))
    return tmp_path


def test_current_and_of_when(real: Catalog, built: Path) -> None:
    state = _state(real, built)
    assert (state.state, state.days, state.tested) == (fleet.CURRENT, 3, "all")


def test_stale(real: Catalog, built: Path) -> None:
    state = _state(real, built, "pytorch-wheel.version=2.12.1")
    assert (state.state, "layer pytorch-wheel" in state.why) == (fleet.STALE, True)


def test_a_layer_less_is_stale(real: Catalog, built: Path) -> None:
    path = built / "local/pytorch/record.json"
    record = json.loads(path.read_text())
    record["plan"]["steps"].append({"id": "of a layer that was taken out"})
    path.write_text(json.dumps(record))
    state = _state(real, built)
    assert (state.state, state.why) == (fleet.STALE, "it has a layer that the image no longer has")


def test_broken(real: Catalog, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFolder, "damage", lambda _self: "the image is another\nmore")
    state = _state(real, built)
    assert (state.state, state.why) == (fleet.BROKEN, "the image is another")


def test_neither_built_nor_planned(real: Catalog, tmp_path: Path) -> None:
    assert _state(real, tmp_path).state == fleet.MISSING
    state = _state(real, tmp_path, "pytorch-wheel.version=1.0.0")
    assert (state.state, "pytorch-wheel.version" in state.why) == (fleet.REFUSED, True)


def test_the_command(run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_cli("--project", GOOD, "report").code == 2
    done = run_cli("--project", GOOD, "report", "--all")
    assert (done.code, done.err) == (0, "")
    page = (tmp_path / "build/report.html").read_text()
    assert "<td>here</td><td>small</td><td>not built</td>" in page


def test_an_image_of_a_matrix(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare it with the definitions and the value that its folder names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ImageFolder, "damage", lambda _self: "")
    words = ("plan", "here", "small", "--set=tool.count=5", "--json")
    plan = json.loads(run_cli("--project", GOOD, *words).out)
    folder = tmp_path / "build/here/small@5"
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(json.dumps({"plan": plan, "tested": "all"}))
    done = run_cli("--project", GOOD, "report", "--all")
    assert "here small@5: current (tests: all" in done.out
