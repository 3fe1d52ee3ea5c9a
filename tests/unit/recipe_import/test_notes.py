"""What is said of a recipe, before anybody builds it: doubts, and reasons that are its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sifwright.cli.commands.import_ import imported
from sifwright.errors import UsageError
from sifwright.recipe_import.layers import write_layers

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.recipe_import.layers.write_layers import ImportedImage

BASE = "FROM debian:12\n"
HEREDOCS = """FROM debian:12
SHELL ["/bin/bash", "-c"]
RUN <<EOT bash
apt-get update
FROM here to there
EOT
RUN cat <<-'ONE' >/a && cat <<TWO >/b
COPY nothing
\tONE
TWO words
TWO
RUN --mount=type=secret,id=x true
"""


def read(place: Path, text: str, name: str = "Dockerfile", context: str = "") -> ImportedImage:
    (place / name).write_text(text)
    return imported(place / name, "case", context)


def notes(place: Path, text: str, name: str = "Dockerfile", context: str = "") -> list[str]:
    """What is said behind the name of the file, but of the image's digest."""
    found = read(place, text, name, context).notes
    said = [note.removeprefix(f"{place / name}:") for note in found]
    return [note for note in said if "has no digest" not in note and "(--offline)" not in note]


def reasons(place: Path, text: str, name: str = "Dockerfile") -> list[str]:
    with pytest.raises(UsageError) as caught:
        read(place, text, name)
    return [f"{one.where.rpartition(':')[2]}: {one.what}" for one in caught.value.problems]


def test_here_documents_do_not_hide_other_reasons(tmp_path: Path) -> None:
    assert reasons(tmp_path, HEREDOCS) == [
        "12: RUN: --mount of type secret with id cannot be carried",
    ]


@pytest.mark.parametrize("text", ["RUN cat <<< EOF\n", "RUN a=$((1<<2))\n"])
def test_what_is_no_here_document(tmp_path: Path, text: str) -> None:
    assert len(read(tmp_path, f"{BASE}{text}RUN true\n").groups) == 2


def test_a_here_document_without_an_end_ends_at_once(tmp_path: Path) -> None:
    text = f"{BASE}RUN cat <<EOF\nRUN --mount=type=secret,id=x true\n"
    assert [one.partition(":")[0] for one in reasons(tmp_path, text)] == ["2", "3"]


def test_many_lines_of_another_language(tmp_path: Path) -> None:
    """They leave room for what else is wrong."""
    text = BASE + "".join(f"word{number} x\n" for number in range(80)) + "ONBUILD x\n"
    found = reasons(tmp_path, text)
    assert found[0] == "2: 'WORD0' is no instruction of Dockerfiles"
    assert found[5:] == [
        "7: 75 more lines begin with no instruction of Dockerfiles",
        "82: ONBUILD is for images built on this one",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "docker/dockerfile:experimental",
        "docker/dockerfile:1.4-labs",
        "docker/dockerfile",
        "docker.io/docker/dockerfile:1",
        "docker/dockerfile-upstream:master",
    ],
)
def test_all_versions_of_dockers_language(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, f"# syntax={name}\n{BASE}RUN true\n").groups


@pytest.mark.parametrize(
    "name", ["tonistiigi/hlb", "docker/dockerfile2:1", "x/docker/dockerfile:1"]
)
def test_another_language(tmp_path: Path, name: str) -> None:
    (found,) = reasons(tmp_path, f"# syntax={name}\n{BASE}RUN true\n")
    assert found == f"1: # syntax={name}: another language than Dockerfiles have"


def test_words_behind_an_argument(tmp_path: Path) -> None:
    """To Docker they are names of variables, too (micromamba's documentation has such a line)."""
    text = f'{BASE}ARG A=1  # (don\'t ask) B=2\nARG C="x #y"\nRUN true\n'
    writing = read(tmp_path, text)
    found = [piece.argument for piece in writing.draft.pieces if piece.argument]
    assert [(one.name, one.default) for one in found] == [("A", "1"), ("B", "2"), ("C", "x #y")]
    assert any("2: ARG # (don't ask) B=2: no comment to Docker" in one for one in writing.notes)


@pytest.mark.parametrize("form", ['SHELL ["/bin/sh", "-c"]', 'shell ["/bin/sh","-c"]'])
def test_the_shell_that_runs_anyway(tmp_path: Path, form: str) -> None:
    assert read(tmp_path, f"{BASE}{form}\nRUN true\n").groups
    (found,) = reasons(tmp_path, f"{BASE}{form}\nSHELL /bin/sh -c\nRUN true\n")
    assert found.startswith("3: SHELL: ")


def test_all_sections_of_apps(tmp_path: Path) -> None:
    text = "Bootstrap: docker\nFrom: debian:12\n%appstart x\n true\n"
    (found,) = reasons(tmp_path, text, "a.def")
    assert found == "3: %appstart is of SCIF apps, which images here do not have"


@pytest.mark.parametrize("kind", ["docker", "library", "oras"])
@pytest.mark.parametrize(
    "image", ["alpine:3.18", "library/alpine", "x/y/busybox:1", "python:3-alpine"]
)
def test_images_without_bash(tmp_path: Path, kind: str, image: str) -> None:
    text = f"Bootstrap: {kind}\nFrom: {image}\n%post\n true\n"
    (found,) = reasons(tmp_path, text, "a.def")
    assert found == f"2: FROM {image}: such images have no bash, which runs the steps"


def test_what_a_whole_folder_is(tmp_path: Path) -> None:
    """Many authors build with another folder than the recipe's."""
    (tmp_path / "docker").mkdir()
    (tmp_path / "app.py").write_text("")
    place, text = tmp_path / "docker", f"{BASE}COPY . /app\n"
    said = f"2: COPY . takes {place} (1 file); --context names another folder"
    assert notes(place, text) == [said]
    assert notes(place, text.replace("COPY .", "ADD ./")) == [said.replace("COPY", "ADD")]
    assert notes(place, text, context=str(tmp_path)) == []
    assert notes(place, f"{BASE}COPY Dockerfile /app\n") == []


def test_a_folder_that_goes(tmp_path: Path) -> None:
    found = notes(tmp_path, f"{BASE}WORKDIR /tmp/x\nRUN git clone u .\nWORKDIR /w\n")
    (said,) = found
    assert said.startswith("2: what RUN puts into its WORKDIR /tmp/x is gone when its layer ends")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("RUN install --prefix /root/x\nENV PATH=/root/x/bin:$PATH\n", "lines 2, 3"),
        ("RUN install --prefix ~/x\n", "line 2"),
        ("RUN . $HOME/.cargo/env && cargo\n", "line 2"),
        ("WORKDIR /root\nRUN wget u\n", "lines 2, 3"),
        ("COPY Dockerfile /root/\n", "line 2"),
        ("RUN a\nRUN rm -rf /root/.cache ~/.cache/pip\n", ""),
        ("RUN tar -C /opt/root/x\nRUN chown root x\n", ""),
        ("ENV HOME=/opt/home\nRUN install ~/x\n", ""),
    ],
)
def test_what_nobody_but_root_reads(tmp_path: Path, text: str, lines: str) -> None:
    found = [note for note in notes(tmp_path, BASE + text) if "/root is named" in note]
    assert [note.partition(": ")[2].partition(":")[0] for note in found] == [lines] * bool(lines)


def test_the_same_in_a_definition_file(tmp_path: Path) -> None:
    text = "Bootstrap: docker\nFrom: debian:12\n%post\n true\n cargo install --root /root/x\n"
    (found,) = (note for note in notes(tmp_path, text, "a.def") if "/root is named" in note)
    assert found.startswith("3: line 3: /root is named")
    assert write_layers.files(read(tmp_path, text, "a.def"))
