"""Notes on a recipe before a build: doubts, and reasons that are its own."""

from pathlib import Path

import pytest

from sifwright.cli.commands.import_ import imported
from sifwright.errors import UsageError
from sifwright.recipe_import.layers import write_layers
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


def read(folder: Path, text: str, name: str = "Dockerfile", context: str = "") -> ImportedImage:
    (folder / name).write_text(text)
    return imported(folder / name, "case", context)


def notes(folder: Path, text: str, name: str = "Dockerfile", context: str = "") -> list[str]:
    """Return the notes after the name of the file, without the image's digest."""
    texts = read(folder, text, name, context).notes
    results = [note.removeprefix(f"{folder / name}:") for note in texts]
    return [note for note in results if "has no digest" not in note and "(--offline)" not in note]


def reasons(folder: Path, text: str, name: str = "Dockerfile") -> list[str]:
    with pytest.raises(UsageError) as caught:
        read(folder, text, name)
    return [
        f"{problem.where.rpartition(':')[2]}: {problem.what}" for problem in caught.value.problems
    ]


def test_here_documents_do_not_hide_other_reasons(tmp_path: Path) -> None:
    assert reasons(tmp_path, HEREDOCS) == [
        "12: RUN: --mount of type secret with id cannot be carried"
    ]


@pytest.mark.parametrize("text", ["RUN cat <<< EOF\n", "RUN a=$((1<<2))\n"])
def test_texts_that_are_no_here_document(tmp_path: Path, text: str) -> None:
    assert len(read(tmp_path, f"{BASE}{text}RUN true\n").groups) == 2


def test_a_here_document_without_an_end_ends_at_once(tmp_path: Path) -> None:
    text = f"{BASE}RUN cat <<EOF\nRUN --mount=type=secret,id=x true\n"
    assert [reason.partition(":")[0] for reason in reasons(tmp_path, text)] == ["2", "3"]


def test_many_lines_of_another_language(tmp_path: Path) -> None:
    """Leave room for other mistakes."""
    text = BASE + "".join(f"word{number} x\n" for number in range(80)) + "ONBUILD x\n"
    message = reasons(tmp_path, text)
    assert message[0] == "2: 'WORD0' is no instruction of Dockerfiles"
    assert message[5:] == [
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
    (message,) = reasons(tmp_path, f"# syntax={name}\n{BASE}RUN true\n")
    assert message == f"1: # syntax={name}: another language than Dockerfiles have"


def test_words_behind_an_argument(tmp_path: Path) -> None:
    """Take them for names of variables, as Docker does (micromamba's documentation has such a
    line).
    """
    text = f'{BASE}ARG A=1  # (don\'t ask) B=2\nARG C="x #y"\nRUN true\n'
    writing = read(tmp_path, text)
    arguments = [piece.argument for piece in writing.draft.pieces if piece.argument]
    assert [(argument.name, argument.default) for argument in arguments] == [
        ("A", "1"),
        ("B", "2"),
        ("C", "x #y"),
    ]
    assert any(
        "2: ARG # (don't ask) B=2: no comment to Docker" in argument for argument in writing.notes
    )


@pytest.mark.parametrize("form", ['SHELL ["/bin/sh", "-c"]', 'shell ["/bin/sh","-c"]'])
def test_the_shell_that_runs_anyway(tmp_path: Path, form: str) -> None:
    assert read(tmp_path, f"{BASE}{form}\nRUN true\n").groups
    (message,) = reasons(tmp_path, f"{BASE}{form}\nSHELL /bin/sh -c\nRUN true\n")
    assert message.startswith("3: SHELL: ")


def test_all_sections_of_apps(tmp_path: Path) -> None:
    text = "Bootstrap: docker\nFrom: debian:12\n%appstart x\n true\n"
    (message,) = reasons(tmp_path, text, "a.def")
    assert message == "3: %appstart is of SCIF apps, which images here do not have"


@pytest.mark.parametrize("kind", ["docker", "library", "oras"])
@pytest.mark.parametrize(
    "image", ["alpine:3.18", "library/alpine", "x/y/busybox:1", "python:3-alpine"]
)
def test_images_without_bash(tmp_path: Path, kind: str, image: str) -> None:
    text = f"Bootstrap: {kind}\nFrom: {image}\n%post\n true\n"
    (message,) = reasons(tmp_path, text, "a.def")
    assert message == f"2: FROM {image}: such images have no bash, which runs the steps"


def test_copies_of_a_whole_folder(tmp_path: Path) -> None:
    """Name the folder, as many authors build with another one than the recipe's."""
    (tmp_path / "docker").mkdir()
    (tmp_path / "app.py").write_text("")
    folder, text = tmp_path / "docker", f"{BASE}COPY . /app\n"
    message = f"2: COPY . takes {folder} (1 file); --context names another folder"
    assert notes(folder, text) == [message]
    assert notes(folder, text.replace("COPY .", "ADD ./")) == [message.replace("COPY", "ADD")]
    assert notes(folder, text, context=str(tmp_path)) == []
    assert notes(folder, f"{BASE}COPY Dockerfile /app\n") == []


def test_a_folder_that_goes(tmp_path: Path) -> None:
    texts = notes(tmp_path, f"{BASE}WORKDIR /tmp/x\nRUN git clone u .\nWORKDIR /w\n")
    (message,) = texts
    assert message.startswith(
        "2: what RUN puts into its WORKDIR /tmp/x is gone when its layer ends"
    )


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
def test_paths_that_only_root_reads(tmp_path: Path, text: str, lines: str) -> None:
    results = [note for note in notes(tmp_path, BASE + text) if "/root is named" in note]
    assert [note.partition(": ")[2].partition(":")[0] for note in results] == [lines] * bool(lines)


def test_the_same_in_a_definition_file(tmp_path: Path) -> None:
    text = "Bootstrap: docker\nFrom: debian:12\n%post\n true\n cargo install --root /root/x\n"
    (results,) = (note for note in notes(tmp_path, text, "a.def") if "/root is named" in note)
    assert results.startswith("3: line 3: /root is named")
    assert write_layers.files(read(tmp_path, text, "a.def"))
