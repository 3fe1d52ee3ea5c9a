"""Constructs of a Dockerfile after the import: stages, here-documents, mounts, arguments."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from spython.logger import bot
from spython.main.parse import parsers

from sifwright.cli.commands.import_ import imported
from sifwright.errors import UsageError
from sifwright.recipe_import.dockerfile import spython_labels
from sifwright.recipe_import.draft import Wanted
from sifwright.recipe_import.layers.write_layers import ImportedImage

STAGES = """ARG TAG=1
FROM tiny:$TAG AS base
ARG ONE=1
ENV TWO=2
WORKDIR /w
CMD ["base"]
FROM other:1 AS unused
COPY --from=base /w /w
FROM Base as Last
RUN last
ENTRYPOINT ["start"]
"""


def read(folder: Path, text: str, **wanted: object) -> ImportedImage:
    (folder / "Dockerfile").write_text(text)
    asked = Wanted(**wanted)  # type: ignore[arg-type]
    return imported(folder / "Dockerfile", "case", wanted=asked)


def code(writing: ImportedImage) -> list[str]:
    return [line for piece in writing.draft.pieces for line in piece.code]


def scripts(writing: ImportedImage) -> dict[str, str]:
    return {file.path: file.data.decode() for piece in writing.draft.pieces for file in piece.files}


def test_a_stage_that_starts_from_another_goes_on_with_it(tmp_path: Path) -> None:
    """Remove the CMD of the stage before by ENTRYPOINT, as of a base image."""
    writing = read(tmp_path, STAGES)
    assert writing.draft.bootstrap["From"] == "tiny:1"
    assert code(writing) == [
        'argument ONE "$OPT_ONE"',
        "variable TWO set 2",
        "folder /w",
        "run /w run-10.sh /bin/sh -c",
    ]
    assert writing.draft.start is not None
    assert (writing.draft.start.entrypoint, writing.draft.start.cmd) == (("start",), ())
    assert any("7: stage unused is left out: last does" in note for note in writing.notes)


def test_the_stage_and_the_arguments_that_are_asked_for(tmp_path: Path) -> None:
    writing = read(tmp_path, STAGES, target="BASE", arguments={"TAG": "5", "ONE": "6"})
    assert writing.draft.bootstrap["From"] == "tiny:5"
    assert writing.draft.pieces[0].argument is not None
    assert writing.draft.pieces[0].argument.default == "6"
    assert writing.draft.start is not None
    assert writing.draft.start.cmd == ("base",)
    with pytest.raises(UsageError, match="no stage none"):
        read(tmp_path, STAGES, target="none")
    with pytest.raises(UsageError, match="8: COPY --from"):
        read(tmp_path, STAGES, target="unused")
    with pytest.raises(UsageError, match="--build-arg TWO: the recipe has no such argument"):
        read(tmp_path, STAGES, arguments={"TWO": "2"})
    with pytest.raises(UsageError, match=r"FROM: the value of tiny:\$B is not in the recipe"):
        read(tmp_path, "FROM tiny:$B\n")
    with pytest.raises(UsageError, match="3: FROM '' is not the name of an image"):
        read(tmp_path, "ARG EMPTY=\nFROM tiny:1 AS x\nFROM $EMPTY\n")


@pytest.mark.parametrize(
    ("text", "run", "script"),
    [
        ("RUN [ -d /x ] || a\n", "run / run-2.sh /bin/sh -c", "[ -d /x ] || a\n"),
        ("RUN <<EOF\na $b\n\tc\nEOF\n", "run / run-2.sh /bin/sh -c", "a $b\n\tc\n"),
        ("RUN <<-EOF\n\ta\n\tEOF\n", "run / run-2.sh /bin/sh -c", "a\n"),
        ("RUN <<EOF\n#!/bin/x\nEOF\n", "run_file / run-2.sh /bin/sh -c", "#!/bin/x\n"),
        (
            "RUN cat <<'A' >/x && \\\n  cat 3<<-B\n# a\nA\n\tb\n\tB\n",
            "run / run-2.sh /bin/sh -c",
            "cat <<'A' >/x &&   cat 3<<-B\n# a\nA\n\tb\nB\n",
        ),
        (
            'SHELL ["bash", "-ec"]\nRUN <<EOF python3\na\nEOF\n',
            "run / run-3.sh bash -ec",
            "<<EOF python3\na\nEOF\n",
        ),
    ],
)
def test_scripts_of_run(tmp_path: Path, text: str, run: str, script: str) -> None:
    """Take one here-document alone for the script; leave others to the shell, as `[ … ]`."""
    writing = read(tmp_path, f"FROM tiny:1\n{text}")
    assert code(writing) == [run]
    assert [*scripts(writing).values()] == [script]


def test_here_documents_of_copy(tmp_path: Path) -> None:
    text = "FROM tiny:1\nCOPY <<-'a.txt' --chmod=600 /x/\n\t$b\n\ta.txt\n"
    text = text.replace("COPY <<-'a.txt' --chmod=600", "COPY --chmod=600 <<-'a.txt'")
    writing = read(tmp_path, text)
    assert scripts(writing) == {"copy-2/a.txt": "$b\n"}
    assert code(writing) == ["copy_file copy-2/a.txt /x/a.txt", 'chmod 600 -- "$copied"']


def test_labels_and_the_last_cmd(tmp_path: Path) -> None:
    """Take the first description for the image's."""
    text = 'CMD ["a"]\nLABEL a="b c" \\\n d=e\nCMD ["echo a b", "c"]\nLABEL x.description="f g"\n'
    draft = read(tmp_path, f"FROM tiny:1\n{text}LABEL description=h\n").draft
    assert draft.start is not None
    assert draft.start.cmd == ("echo a b", "c")
    assert draft.remarks == [
        'LABEL a="b c"  d=e',
        'LABEL x.description="f g"',
        "LABEL description=h",
    ]
    assert draft.description == "f g"


@pytest.mark.parametrize("ends", [sys.exit, {}.pop])
def test_spython_neither_prints_nor_ends_the_program(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], ends: Callable[[str], None]
) -> None:
    def label(_parser: object, _line: object) -> None:
        print("said")  # noqa: T201
        bot.error("said")
        ends("any reason")

    monkeypatch.setattr(bot, "errorStream", sys.stderr)  # as it is when spython is loaded
    monkeypatch.setattr(parsers.DockerParser, "_label", label)
    with pytest.raises(UsageError, match=r"the recipe: spython cannot parse it: .*'any reason'"):
        spython_labels.labels(["a=b"])
    assert capfd.readouterr() == ("", "")


def test_mounts_are_there_for_one_run(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    flags = "--mount=type=cache,id=a,target=/c,sharing=locked --mount=source=one,dst=two"
    writing = read(tmp_path, f"FROM tiny:1\nWORKDIR /w\nRUN {flags} cat two\n")
    assert code(writing)[1:] == [
        "hide /c",
        "folder /c",
        "hide /w/two",
        "copy_file mount-3-1/one /w/two",
        "run /w run-3.sh /bin/sh -c",
        "show",
    ]
    assert scripts(writing)["mount-3-1/one"] == "1"


def test_a_user_makes_its_own_workdir(tmp_path: Path) -> None:
    writing = read(tmp_path, "FROM tiny:1\nWORKDIR /a\nUSER me\nWORKDIR b\nRUN id\nRUN c\n")
    assert code(writing)[:3] == ["folder /a", "user me", "workdir /a/b"]
    assert writing._before(2) == ["user me"]  # noqa: SLF001  # a later layer repeats this


TENFOLD = "".join(f"ARG A{n + 1}={f'$A{n}' * 10}\n" for n in range(12))


@pytest.mark.parametrize(
    "text",
    [
        f"FROM tiny:1\nARG A0=xxxxxxxxxx\n{TENFOLD}",
        f"FROM tiny:1\nENV A0=xxxxxxxxxx\n{TENFOLD}RUN a\n".replace("ARG", "ENV"),
    ],
)
def test_variables_of_variables_that_would_make_terabytes(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"A\d[^ ]* becomes longer than 4096 characters"):
        read(tmp_path, f"{text}COPY $A12 /x\n")


@pytest.mark.parametrize(
    "text",
    [
        f"ARG B={'x' * 4000}\n{''.join(f'ARG A{n}=x$B' + chr(10) for n in range(1100))}FROM a\n",
        f"FROM a\nENV B={'x' * 4000}\nENV {' '.join(f'A{n}=x$B' for n in range(1100))}\n",
    ],
    ids=["before-from", "one-line"],
)
def test_all_values_of_a_recipe_have_one_limit(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="the values of variables have more than 4 MiB together"):
        read(tmp_path, text)


def test_a_path_and_a_folder_that_grow_line_by_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"P: 'x.* is longer than 4096 characters"):
        read(tmp_path, "FROM tiny:1\n" + f"ENV P={'x' * 50}:$P\n" * 100)
    with pytest.raises(UsageError, match=r"WORKDIR: '/x.* is longer than 4096 characters"):
        read(tmp_path, "FROM tiny:1\nWORKDIR /\n" + f"WORKDIR {'x' * 50}\n" * 100)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "text",
    [
        "RUN a\n" * 40_000,
        "EXPOSE 1\n" * 40_000 + "".join(f"EXPOSE {n}\n" for n in range(20_000)),
        f"RUN {'apt ' * 100_000}\nRUN {'pip ' * 100_000}\n",
        "\n" * 500_000,
    ],
    ids=["runs", "notes", "words", "blank-lines"],
)
def test_a_recipe_as_long_as_it_may_be_takes_seconds(tmp_path: Path, text: str) -> None:
    """Take linear time: the square of the length would take hours."""
    assert read(tmp_path, f"FROM tiny:1\n{text}").draft.bootstrap["From"] == "tiny:1"


def test_a_layer_ends_with_the_last_run_that_needs_a_temporary_folder(tmp_path: Path) -> None:
    text = (
        "RUN apt update\nRUN a\nRUN apt install b\nRUN apt update; apt install c\nRUN d >/tmp/x\n"
    )
    groups = read(tmp_path, f"FROM tiny:1\n{text}RUN e\nRUN f </tmp/x\nRUN g\n").groups
    assert [[piece.line for piece in pieces] for pieces in groups] == [
        [2, 3, 4],
        [5],
        [6, 7, 8],
        [9],
    ]
