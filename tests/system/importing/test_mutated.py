"""Any text as a recipe is refused with its lines, or becomes layers that load."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sifwright.catalog.load_catalog import load_catalog
from sifwright.cli.commands.import_ import imported
from sifwright.errors import UsageError
from sifwright.recipe_import.layers import write_layers
from tests.conftest import ROOT
from tests.system.importing.corpus import CORPUS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sifwright.catalog.model import LayerFile

RECIPES = sorted(CORPUS.glob("*.def")) + sorted(CORPUS.glob("*.Dockerfile"))
# Beginnings, ends and middles of what either language has, whole and broken.
WORDS = [
    *("%post", "%", "%%", "% ", "%post -c", "%files\n a b c", '%files\n"" /x'),
    *("%environment\n A=$A", "%runscript", "%test", "%labels", "%help", "%appstart x", "{{ x }}"),
    *("Bootstrap:", "From:", "FROM", "FROM a AS", "RUN", "RUN [", "RUN []", 'RUN [""]'),
    *('RUN ["a",]', "RUN cat <<A <<B", "CMD", "CMD [", "CMD []", "CMD {", "CMD 1", "ENTRYPOINT"),
    *("ENTRYPOINT [1]", "ENTRYPOINT null", "COPY", "COPY . ", "COPY [] /x", 'COPY ["a"]'),
    *("COPY --from a b", "COPY --chmod= a b", "ADD . .", "ADD http://x/ /y"),
    *("ADD --checksum= http://x/a /y", "ARG", "ARG =", "ARG A=$A", "ARG A #'b", "ENV", "ENV ="),
    *("ENV A", "ENV A=${A:-${B}}", "ENV A=$", 'ENV "="', "WORKDIR", "WORKDIR $X", "WORKDIR .."),
    *("USER", "USER $U", "LABEL", "LABEL a", 'LABEL a="b', "EXPOSE", "EXPOSE []", "VOLUME ["),
    *("SHELL", "SHELL []", "ONBUILD", "HEALTHCHECK", "HEALTHCHECK CMD", "# escape=`"),
    *("# syntax=", "\\", "\\\\", "<<EOF", "'", '"', "$", "${", "`", "#", "=", "/", "\t", "  "),
    *("é", "export A", "A="),
]  # fmt: skip
EDIT = st.tuples(
    st.sampled_from(["drop", "insert", "within", "swap", "end"]),
    st.integers(0, 200),
    st.integers(0, 200),
    st.sampled_from(WORDS),
)


def mutated(text: str, edits: list[tuple[str, int, int, str]]) -> str:
    lines = text.split("\n")
    for kind, edit, two, word in edits:
        number, other = edit % len(lines), two % len(lines)
        if kind == "drop":
            lines[number] = ""
        elif kind == "insert":
            lines.insert(number, word)
        elif kind == "within":
            index = two % (len(lines[number]) + 1)
            lines[number] = lines[number][:index] + word + lines[number][index:]
        elif kind == "swap":
            lines[number], lines[other] = lines[other], lines[number]
        else:
            lines = lines[: number + 1]
    return "\n".join(lines)


def loaded(result: Mapping[str, LayerFile], folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for path, file in result.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(file.data)
    shutil.copy(ROOT / "defs" / "versions.yaml", folder)
    load_catalog(folder, folder.parent)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mutated") / "context"
    shutil.copytree(CORPUS / "context", folder)
    return folder


@settings(max_examples=100)
@given(recipe=st.sampled_from(RECIPES), edits=st.lists(EDIT, max_size=3))
def test_refused_or_loads(
    context: Path, recipe: Path, edits: list[tuple[str, int, int, str]]
) -> None:
    path = context.parent / f"recipe{recipe.suffix}"
    path.write_text(mutated(recipe.read_text(), edits))
    with contextlib.suppress(UsageError):
        result = write_layers.files(imported(path, "case", str(context)))
        loaded(result, context.parent / "defs")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("only.def", "Bootstrap: docker\nFrom: ubuntu:22.04\n"),
        ("Dockerfile", "FROM debian:12\n\\\nRUN true\n"),
        ("Dockerfile", "FROM debian:12\nRUN \\\n\\\n true\n"),
    ],
    ids=["no section", "a backslash alone", "two"],
)
def test_imported(context: Path, name: str, text: str) -> None:
    (context.parent / name).write_text(text)
    loaded(write_layers.files(imported(context.parent / name, "case")), context.parent / "defs")
