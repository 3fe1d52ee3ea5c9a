"""`sifwright report` of real SIFs, with and without what the cache knows."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from sifwright.cli.commands.report import write as write_page
from sifwright.images.contents.listing import ListedPath
from sifwright.make_image.cache.store import Store
from sifwright.make_image.pack_layers.pack import LISTING, SQUASHFS
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.report.page import report_data
from tests.conftest import sifwright
from tests.system.apptainer.sifs import pack
from tests.system.apptainer.test_diff import METADATA, PLAN, tree, write
from tests.unit.listings import write_listing

if TYPE_CHECKING:
    from pathlib import Path

EVENT = {"step": "base", "state": "done", "start": 0.0, "seconds": 2.5}
pytestmark = pytest.mark.skipif(not shutil.which("mksquashfs"), reason="needs squashfs-tools")


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageFolder:
    """Make the folder of a small flat image, with an empty cache."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "out"
    folder.mkdir()
    whole = tree(tmp_path / "tree")
    record = METADATA.replace("METADATA", "RECORD")
    (whole / record).write_text(
        "../same,,\n../../../../name,,\n../site-packages/torch-2.dist-info/METADATA,,\n"
    )
    write(folder / "image.sif", pack(whole, is_system=True))
    (folder / "record.json").write_text(json.dumps({"plan": PLAN, "timeline": [EVENT]}))
    return ImageFolder(folder=folder, name="small")


def test_without_a_cache(output: ImageFolder) -> None:
    result = report_data.gather(output)
    assert not result.by_layer
    assert [(layer.name, layer.packed > 0) for layer in result.layers] == [("image", True)]
    parts = {part.name: part.bytes for part in result.layers[0].parts}
    assert parts["torch"] == 3 + len("Name: torch\nVersion: 2\n")
    assert {package.name for package in result.packages} == {"bash", "torch"}
    assert result.definition == "Bootstrap: x\n"
    assert [package.step for package in result.events] == ["base"]
    page = write_page(output, "")
    assert page == output.folder / "report.html"
    assert "no longer what the steps made" in page.read_text()


def test_the_recipe_of_the_same_plan(output: ImageFolder) -> None:
    """Show the readable definition file, unless another plan has written it."""
    recipe = output.folder / "recipe" / f"{PLAN['image']}.def"
    recipe.parent.mkdir()
    text = "Bootstrap: y\n%labels\n    org.sifwright.plan {}\n"
    recipe.write_text(text.format("another"))
    assert report_data.gather(output).definition == "Bootstrap: x\n"
    recipe.write_text(text.format(PLAN["id"]))
    assert report_data.gather(output).definition == text.format(PLAN["id"])


def test_with_a_cache(output: ImageFolder) -> None:
    store = Store.open()
    with store.folder() as folder:
        (folder / SQUASHFS).write_bytes(b"x" * 77)
        known = [
            ListedPath(path=b"same", kind="file", size=4),
            ListedPath(path=b"name", kind="file", size=9),
        ]
        write_listing(folder / LISTING, known)
        step = {"layer": "base", "step": PLAN["id"], "below": "", "inputs": {}}
        store.put("a" * 64, folder, step)
    result = report_data.gather(output)
    assert result.by_layer
    sizes = [(layer.name, layer.packed) for layer in result.layers]
    assert sizes == [("base", 77), ("metadata", 0)]
    # The other one has another size there than in the image.
    assert (result.layers[0].bytes, result.layers[0].files) == (4, 1)


def test_layered(output: ImageFolder, tmp_path: Path) -> None:
    base = pack(tree(tmp_path / "base"), is_system=True)
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "big").write_bytes(b"x" * 999)
    write(output.link, base, pack(tmp_path / "top"))
    result = report_data.gather(output)
    assert result.by_layer
    assert [layer.name for layer in result.layers] == ["base", "top"]
    assert result.layers[1].bytes == 999


@pytest.mark.parametrize("record", ["", "[]", '{"sources": 5}', '{"timeline": 5}', '{"plan": {}}'])
def test_a_damaged_record_is_no_obstacle(output: ImageFolder, record: str) -> None:
    output.record.write_text(record)
    text = write_page(output, str(output.folder / "page.html")).read_text()
    assert "small" in text


@pytest.mark.image
@pytest.mark.usefixtures("image")
def test_the_real_image(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = sifwright("report", "local", "pytorch", "--output", page)
    assert (done.returncode, done.stderr) == (0, "")
    text = page.read_text()
    for word in ("torch", "libc6", "base-debian", "layer default", "passed", "BSD-3-Clause"):
        assert word in text, word
    assert "http-equiv" in text
    assert page.stat().st_size < 2_000_000
    bad = sifwright("report", "local", "pytorch", "--output", tmp_path / "no" / "page.html")
    assert bad.returncode == 5
    assert "Name a file with --output." in bad.stderr
