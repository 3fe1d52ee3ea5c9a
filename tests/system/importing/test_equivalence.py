"""Images of our layers, which equal the images of the recipe's own builder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.render.build_files import package_text
from tests.conftest import run, sifwright
from tests.spread import spread
from tests.system.apptainer.steps import differences
from tests.system.importing.building import unlike

if TYPE_CHECKING:
    from tests.system.importing.building import Workshop

RECIPES = Path(__file__).parent / "recipes"
REPLACES = """FROM tiny:1
RUN mkdir -p /t/real /t/link/in /t/file/in /x/file/in && ln -s real /t/folder
RUN ln -s nowhere /t/dangling; ln -s ../t/real /x/bits; echo old >/t/over-file; mkdir /x/link
COPY tree /t
COPY tree/file tree/bits /x/
"""
pytestmark = pytest.mark.build


# A Dockerfile with most of what there is, what COPY does, and a definition file.
DEFAULT = ("seen",)
COMMON = ("copies", "definition", "stages", "users")
NAMES = sorted(path.name for path in RECIPES.iterdir())
RARE = [name for name in NAMES if name not in DEFAULT + COMMON]


@pytest.mark.parametrize("name", spread(NAMES, DEFAULT, RARE))
def test_equivalent(workshop: Workshop, name: str) -> None:
    result = [*(RECIPES / name).glob("Dockerfile"), *(RECIPES / name).glob("*.def")]
    recipe = workshop.copy(result[0], name)
    different = unlike(workshop.original(recipe), workshop.ours(recipe))
    assert not different, "\n".join(f"{key}: {value}" for key, value in different.items())


def test_a_value_that_the_base_decides(workshop: Workshop, tmp_path: Path) -> None:
    """Read ENV as Docker does in the build, not as it was when the recipe was read."""
    text = "FROM tiny:1\nARG BASE_WORD=ours\nENV USED=$BASE_WORD\nRUN true\n"
    recipe = workshop.write("decided", text, tmp_path)
    with pytest.raises(AssertionError, match="but the base image has"):
        workshop.ours(recipe)


@pytest.mark.all
def test_names_that_apptainer_keeps(workshop: Workshop, tmp_path: Path) -> None:
    """Give RUN the recipe's values; a container would print an error at each start."""
    text = (
        "FROM tiny:1\nENV UID=5 EUID=6 GID=7\nRUN echo $UID >/one\nRUN echo $UID $EUID $GID >/two\n"
    )
    recipe = workshop.write("apptainers", text, tmp_path)
    original, ours = workshop.original(recipe), workshop.ours(recipe)
    assert not differences(original.tree, ours.tree)
    assert not {"EUID", "GID"} & ours.environment.keys()


def test_copy_over_another_kind_of_file(workshop: Workshop, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    folders = ("folder/new", "folder/sub/new", "dangling/file", "over-file/file")
    for folder in (*folders, "file", "bits"):
        (tree / folder).parent.mkdir(parents=True, exist_ok=True)
        (tree / folder).write_text(folder)
    (tree / "link").symlink_to("file")
    (tree / "bits").chmod(0o6755)
    (tree / "shared").mkdir()
    (tree / "shared").chmod(0o1777)
    recipe = workshop.write("replaces", REPLACES, tmp_path)
    original, ours = workshop.original(recipe), workshop.ours(recipe)
    assert not differences(original.tree, ours.tree)


def test_a_folder_in_the_place_of_a_link_of_the_system(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "tree" / "lib").mkdir(parents=True)
    (tmp_path / "tree" / "lib" / "new").write_text("new")
    recipe = workshop.write("systems", "FROM tiny:1\nCOPY tree /\n", tmp_path)
    with pytest.raises(
        AssertionError, match=r"line 2 of the recipe: COPY brings /lib as .*: call it /usr/lib"
    ):
        workshop.ours(recipe)


def test_mounted_folders_stay(tmp_path: Path) -> None:
    """Keep the mounted /tmp in steps, here a folder of the test."""
    for folder in ("machine", "image/with blank/tmp"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "machine" / "file").write_text("of the machine")
    (tmp_path / "recipe.sh").write_text(package_text("recipe_import/templates/recipe.sh"))
    mount = 'export SIFWRIGHT_BUILD=$PWD; mount --bind machine "image/with blank/tmp"'
    for path in ("image/with blank", "image/with blank/tmp"):
        script = f"{mount}; exec bash -euc \". ./recipe.sh; make_way '{path}'\""
        done = run(["unshare", "--map-root-user", "--mount", "sh", "-c", script], cwd=tmp_path)
        assert done.returncode == 1, done.stdout
        assert f"COPY would replace {path}, where the build has " in done.stderr
        assert (tmp_path / "machine" / "file").exists()


# ---- what they start ----


def started(workshop: Workshop, sif: Path, *words: str) -> list[str]:
    done = run([workshop.engine, "--quiet", "run", "--containall", "--no-home", sif, *words])
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_docker_and_our_image_start_the_same(workshop: Workshop, tmp_path: Path) -> None:
    """Start the base image's ENTRYPOINT with the recipe's CMD, in the base image's WORKDIR."""
    text = 'FROM tiny:1-says\nRUN true\nCMD ["a  b", "c"]\n'
    recipe = workshop.write("started", text, tmp_path)
    workshop.ours(recipe)
    folder = recipe.parent.parent
    sif = folder / "build" / "local" / "case" / "image.sif"
    assert started(workshop, sif) == ["/workspace/here", "<a  b>", "<c>"]
    assert started(workshop, sif, "other") == ["/workspace/here", "<other>"]
    env = os.environ | {"SIFWRIGHT_MIRRORS": str(folder / "mirrors.json")}
    words = ["--project", folder / "project", "render", "local", "case", "--format", "dockerfile"]
    done = sifwright(*words, "--output", folder / "docker", env=env)
    assert done.returncode == 0, done.stderr
    message = (folder / "docker" / "Dockerfile").read_text()
    assert '\nWORKDIR /workspace/here\nENTRYPOINT ["/bin/sh", "-c", "pwd; for one' in message
    assert '\nCMD ["a  b", "c"]\n' in message


@pytest.mark.all
@pytest.mark.parametrize("text", ["%post\n    true\n", ""], ids=["with-post", "alone"])
def test_apptainer_and_our_images_start_the_same(
    workshop: Workshop, tmp_path: Path, text: str
) -> None:
    """Put together from steps, and built by hand from the definition file."""
    runs = '%runscript\n    for one; do echo "<$one>"; done\n    echo "\\ %d" $#\n'
    whole = f"Bootstrap: localimage\nFrom: /tiny.sif\n{text}%help\n    Ours.\n{runs}"
    recipe = workshop.write(f"runs-{len(text)}", whole, tmp_path, "recipe.def")
    workshop.original(recipe)
    workshop.ours(recipe)
    folder = recipe.parent.parent
    done = sifwright("--project", folder / "project", "render", "local", "case", "--single-file")
    (folder / "x.def").write_text(done.stdout)
    build = [workshop.engine, "--quiet", "build", "--fakeroot"]
    done = run([*build, folder / "hand.sif", folder / "x.def"], cwd=folder)
    assert done.returncode == 0, done.stderr
    for sif in (folder / "build" / "local" / "case" / "image.sif", folder / "hand.sif"):
        assert started(workshop, sif, "a  b", "c") == started(
            workshop, folder / "original.sif", "a  b", "c"
        )
        shown = run([workshop.engine, "run-help", sif]).stdout
        assert shown.startswith("Ours.") or "\n    Ours." in f"\n{shown}"
        assert "conda-python-simple" not in shown
