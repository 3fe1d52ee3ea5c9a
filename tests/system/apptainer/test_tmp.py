"""Steps that write to /tmp and /var/tmp: they get folders of their own; the machine's stay.

Where the engine runs all steps at once, test_machines looks at it.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import sifwright
from tests.system.apptainer.toys import STRICT, succeeded
from tests.system.apptainer.trees import unpack
from tests.system.apptainer.trials import states

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.system.apptainer.toys import Toy

pytestmark = pytest.mark.build
PLACES = ("/tmp", "/var/tmp")


@pytest.fixture
def files() -> Iterator[list[Path]]:
    """Make files of the machine with a unique name: a test may remove only these."""
    name = f"sifwright-test-{secrets.token_hex(8)}"
    results = [Path(folder, name) for folder in PLACES]
    for file in results:
        file.write_text("of the machine\n")
    yield results
    for file in results:
        file.unlink(missing_ok=True)


def tidy(files: list[Path], *, name: str) -> str:
    """Return a script that removes its files there as many recipes do, and leaves some."""
    lines = [f"rm -f {' '.join(map(str, files))}"]
    for folder in PLACES:
        lines += [f"[[ -z $(ls -A {folder}) && $(stat -c %a {folder}) == 1777 ]]"]
        lines += [f"echo 1 >{folder}/left; chown 33:33 {folder}/left"]
    return "\n".join([*lines, f"echo {name} >/{name}", ""])


def assert_untouched(files: list[Path]) -> None:
    assert [file.exists() for file in files] == [True, True]
    assert [file.with_name("left").exists() for file in files] == [False, False]


def left_in(engine: str, toy: Toy, folder: Path) -> list[str]:
    """Return the files that the image itself has there; the engine shows others."""
    tree = unpack(engine, toy.sif, folder)
    return [path.name for location in PLACES for path in (tree / location.lstrip("/")).iterdir()]


def test_in_a_tree_and_on_an_overlay(
    engine: str, tiny: Toy, files: list[Path], tmp_path: Path
) -> None:
    """Run the first step as well, which the engine's `build` runs."""
    install = tiny.folder / "defs" / "layers" / "base-local" / "install.sh"
    install.write_text(STRICT + tidy(files, name="base"))
    for name in ("one", "two", "three"):
        tiny.layer(name, tidy(files, name=name))
    tiny.image("one", "two")
    succeeded(tiny.build())
    assert_untouched(files)
    assert left_in(engine, tiny, tmp_path / "tree") == []
    tiny.image("one", "two", "three")
    done = tiny.build("--json")
    assert states(done)["two"] == "cached", done.stdout + done.stderr
    assert_untouched(files)
    assert left_in(engine, tiny, tmp_path / "overlay") == []
    assert tiny.execute(engine, "cat", "/base", "/three").split() == ["base", "three"]


def test_in_a_shell(tiny: Toy, files: list[Path]) -> None:
    tiny.layer("one", tidy(files, name="one"))
    tiny.layer("two", tidy(files, name="two"))
    tiny.image("one", "two")
    words = tiny.words("shell", "--before", "two")
    done = succeeded(sifwright(*words, input="bash install.sh && cat /tmp/left"))
    assert done.stdout.splitlines()[-1] == "1"
    assert_untouched(files)
