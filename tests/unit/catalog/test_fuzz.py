"""R9: no YAML file, however spoilt, gives a traceback, takes long or much memory."""

import time
import tracemalloc
from pathlib import Path

import pytest

from sifwright.catalog import schema, yaml_file
from sifwright.catalog.load_catalog import load_catalog
from sifwright.errors import CatalogError, Problem, SifwrightError
from sifwright.plan.resolve import resolve
from sifwright.render.definition import definition
from tests.unit import fuzz
from tests.unit.conftest import CHECKOUT, MACHINE

pytestmark = pytest.mark.all

DEFS = CHECKOUT / "defs"
KINDS = {
    **dict.fromkeys(DEFS.glob("sites/*.yaml"), "site"),
    **dict.fromkeys(DEFS.glob("images/*.yaml"), "image"),
    **dict.fromkeys(DEFS.glob("layers/*/layer.yaml"), "layer"),
    DEFS / "versions.yaml": "versions",
}
DOCUMENTS, TREES = 10_000, 200
# Seconds of processor time: wrong code took minutes.
SECONDS, MEGABYTES = 10.0, 200


def _says_it_all(problem: Problem) -> bool:
    assert problem.what
    assert problem.fix
    return True


def _read(data: bytes, kind: str) -> bool:
    """Return whether a document is good; pass on any exception but ours."""
    try:
        document = yaml_file.parse_yaml(data, "x.yaml")
    except CatalogError as error:
        return not all(map(_says_it_all, error.problems))
    return not list(schema.check_document(document, kind, "x.yaml"))


def test_documents(portion: float) -> None:
    good = slowest = 0.0
    documents = DOCUMENTS * portion
    per_file = int(documents / len(KINDS)) + 1
    for number, (path, kind) in enumerate(sorted(KINDS.items())):
        for data in fuzz.mutants(path.read_bytes(), fuzz.SEED + number, per_file):
            start = time.process_time()
            good += _read(data, kind)
            slowest = max(slowest, time.process_time() - start)
    assert slowest < SECONDS
    assert 0.02 * documents < good < 0.5 * documents, "the mutations are too mild or too wild"


@pytest.mark.parametrize("name", fuzz.BOMBS)
def test_bomb(name: str) -> None:
    start = time.process_time()
    assert not _read(fuzz.BOMBS[name], "layer")
    assert time.process_time() - start < SECONDS
    tracemalloc.start()
    _read(fuzz.BOMBS[name], "layer")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MEGABYTES << 20


def test_trees(project: Path) -> None:
    """Try whole catalogs with one spoilt file, scripts among them, and their output."""
    files = sorted(path for path in (project / "defs").rglob("*") if path.is_file())
    result = slowest = 0.0
    for number, path in enumerate(files):
        before = path.read_bytes()
        for data in fuzz.mutants(before, fuzz.SEED + number, TREES // len(files) + 1):
            path.write_bytes(data)
            start = time.process_time()
            result += _render(project)
            slowest = max(slowest, time.process_time() - start)
        path.write_bytes(before)
    assert slowest < SECONDS
    assert 0.1 * TREES < result < 0.9 * TREES


def _render(project: Path) -> bool:
    try:
        catalog = load_catalog(project / "defs", project)
        definition(resolve(catalog, "here", "", []), MACHINE)
    except SifwrightError as error:
        return not all(map(_says_it_all, error.problems))
    return True


@pytest.mark.parametrize("name", ["flat list", "unknown keys", "bad options", "anchors"])
def test_bomb_in_a_tree(project: Path, name: str) -> None:
    (project / "defs/layers/tool/layer.yaml").write_bytes(fuzz.BOMBS[name])
    start = time.process_time()
    with pytest.raises(CatalogError) as caught:
        load_catalog(project / "defs", project)
    assert time.process_time() - start < SECONDS
    assert len(caught.value.problems) <= schema.MAX_FINDINGS
    assert len(str(caught.value)) < 100_000
