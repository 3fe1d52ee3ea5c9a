"""Imports between the folders of the package."""

import ast
import functools
import os
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "builder" / "sifwright"
# From the ground up: a room may import the rooms named here, and no others.
ALLOWED = {
    "system": set(),
    "catalog": {"system"},
    "plan": {"catalog"},
    "render": {"catalog", "plan"},
    "host": {"system", "catalog", "plan"},
    "images": {"system", "catalog", "host"},
    "make_image": {"system", "catalog", "plan", "render", "host", "images"},
    "launch": {"system", "catalog", "plan", "render", "host", "images", "make_image"},
    "install": {"system", "catalog", "plan", "render", "images", "make_image", "launch"},
    "report": {"system", "catalog", "plan", "host", "images", "make_image", "install"},
    "extend": {"system", "catalog", "plan", "host"},
    "recipe_import": {"system", "catalog", "plan", "render", "host", "images"},
    "cli": {"system", "catalog", "plan", "render", "host", "images"}
    | {"make_image", "report", "launch", "install", "recipe_import", "extend"},
}
# Rooms that use no program, server or clock; `catalog` reads the files below defs/.
PURE = ("catalog", "plan", "render")
EFFECTS = {"subprocess", "requests", "urllib3", "docker", "socket", "shutil", "tempfile", "time"}


@functools.cache
def imported(file: Path) -> set[str]:
    """Return the modules that a file imports anywhere, for type checkers included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file} imports by dots: name the whole module"
            module = node.module or ""
            names |= {f"{module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def rooms_of(file: Path) -> set[str]:
    ours = {name.split(".")[1] for name in imported(file) if name.startswith("sifwright.")}
    return ours & ALLOWED.keys()


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_imports_only_rooms_below_it(room: str) -> None:
    for file in (PACKAGE / room).rglob("*.py"):
        above = rooms_of(file) - ALLOWED[room] - {room}
        assert not above, f"{file.relative_to(PACKAGE)} imports {sorted(above)}"


@pytest.mark.parametrize("room", PURE)
def test_a_pure_room_has_no_effects(room: str) -> None:
    for file in (PACKAGE / room).rglob("*.py"):
        effects = {name.split(".")[0] for name in imported(file)} & EFFECTS
        assert not effects, f"{file.relative_to(PACKAGE)} is pure and imports {sorted(effects)}"


@functools.cache
def modules() -> dict[str, Path]:
    names = {
        ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts): file
        for file in PACKAGE.rglob("*.py")
    }
    return {name.removesuffix(".__init__"): file for name, file in names.items()}


def imported_modules(name: str) -> set[str]:
    """Return our modules that a module imports: in functions and for type checkers, too."""
    names = imported(modules()[name])
    own = {target if target in modules() else target.rpartition(".")[0] for target in names}
    return (own & modules().keys()) - {name}


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {name: imported_modules(name) for name in modules()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


def imports_between_branches() -> Iterator[tuple[Path, str, str]]:
    """Yield each import as the folder that has both files, and the two branches of that folder.

    A branch is a subfolder with all that is below it, or all files of the folder itself.
    """
    for name, file in modules().items():
        for target in imported_modules(name):
            ends = [file.parent, modules()[target].parent]
            folder = Path(os.path.commonpath(ends))
            first, other = (next(iter(end.relative_to(folder).parts), "its files") for end in ends)
            if first != other:
                yield folder, first, other


def test_no_folders_import_each_other_in_a_circle() -> None:
    graphs: dict[Path, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for folder, pair, other in imports_between_branches():
        # Leave out the package's own files: errors.py is below all rooms, __main__.py above.
        if folder != PACKAGE or "its files" not in {pair, other}:
            graphs[folder][pair].add(other)
    assert {PACKAGE, PACKAGE / "make_image", PACKAGE / "extend"} <= graphs.keys()
    for folder, graph in graphs.items():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circle = " imports ".join(reversed(error.args[1]))
            pytest.fail(f"{folder.relative_to(PACKAGE.parent)}: {circle}")


def test_no_folder_of_a_build_imports_the_files_that_lead_through_it() -> None:
    above = {
        pair
        for folder, pair, other in imports_between_branches()
        if other == "its files"
        if folder == PACKAGE / "make_image"
    }
    assert not above


def test_every_folder_is_a_room_that_says_what_it_does() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert folders == ALLOWED.keys()
    modules = {path.name for path in PACKAGE.glob("*.py")}
    assert modules == {"__init__.py", "__main__.py", "errors.py"}
    inner = (PACKAGE / "make_image").rglob("__init__.py")
    for file in [*(PACKAGE / room / "__init__.py" for room in folders), *inner]:
        text = ast.get_docstring(ast.parse(file.read_text())) or ""
        assert 3 <= len(text.splitlines()) <= 8, f"{file.relative_to(PACKAGE)}: {text!r}"
