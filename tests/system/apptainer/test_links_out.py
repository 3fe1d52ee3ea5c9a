"""A step can put links where the builder itself reads: they lead to no file of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sifwright.make_image.cache.store import Store
from tests.system.apptainer.toys import STRICT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.apptainer.toys import Toy

pytestmark = pytest.mark.build
SECRET = "of the machine alone"  # noqa: S105  # none that opens anything


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text(SECRET)
    return folder


def first_step(toy: Toy, install: str) -> None:
    (toy.folder / "defs/layers/base-local/install.sh").write_text(STRICT + install)


def refused(toy: Toy, where: str) -> list[str]:
    """Build, and be told of a path; the steps whose results stay."""
    done = toy.build()
    assert done.returncode == 6, done.stdout + done.stderr
    assert f"{where} in the image: " in done.stderr
    assert SECRET not in done.stdout + done.stderr
    entries = Store.open().entries()
    assert SECRET not in "".join(str(entry.manifest) for entry in entries)
    return [entry.manifest["layer"] for entry in entries]


def test_in_place_of_what_is_kept(tiny: Toy, outside: Path) -> None:
    """Try it in a tree, on an overlay, and in the first step."""
    lead = f"rm -rf $SIFWRIGHT_BUILD/kept; ln -s {outside} $SIFWRIGHT_BUILD/kept\n"
    tiny.layer("one", "true\n")
    tiny.layer("two", lead)
    tiny.layer("three", "cp $SIFWRIGHT_BUILD/kept/file /file\n")
    tiny.image("one", "two", "three")
    for _ in ("tree", "overlay"):
        assert sorted(refused(tiny, "/.sifwright/kept")) == ["base-local", "one"]
    first_step(tiny, lead)
    assert sorted(refused(tiny, "/.sifwright/kept")) == ["base-local", "one"]


@pytest.mark.parametrize("path", ["env/90-environment.sh", "env"])
def test_in_place_of_metadata(tiny: Toy, outside: Path, path: str) -> None:
    """Refuse it, or the image's metadata would have the text; the engine writes the labels."""
    folder = f"/.singularity.d/{path}"
    (outside / "90-environment.sh").write_text(SECRET)
    (outside / "env").mkdir()
    (outside / "env" / "90-environment.sh").write_text(SECRET)
    target = outside / ("file" if path.endswith(".sh") else "")
    first_step(tiny, f"mv {folder} /moved || true; ln -sfn {target} {folder}\n")
    assert refused(tiny, "/.singularity.d/env/90-environment.sh") == []
    assert sorted(entry.name for entry in outside.iterdir()) == ["90-environment.sh", "env", "file"]
