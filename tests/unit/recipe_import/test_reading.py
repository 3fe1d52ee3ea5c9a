"""Single instructions after the import: their layers, the headers of these, and their words."""

from pathlib import Path

import pytest
import yaml

from sifwright.cli.commands.import_ import imported
from sifwright.errors import UsageError
from sifwright.recipe_import.layers import write_layers
from sifwright.recipe_import.layers.write_layers import ImportedImage

BASE = "FROM debian:12\n"
DEF = "Bootstrap: docker\nFrom: debian:12\n"


def read(folder: Path, text: str, name: str = "Dockerfile") -> ImportedImage:
    (folder / name).write_text(text)
    return imported(folder / name, "case")


def code(writing: ImportedImage) -> str:
    return "\n".join(line for piece in writing.draft.pieces for line in piece.code)


def runs(writing: ImportedImage) -> list[list[int]]:
    """Return the lines of the RUNs of each layer."""
    return [[piece.line for piece in pieces if piece.is_run] for pieces in writing.groups]


def headers(writing: ImportedImage) -> list[dict[str, dict[str, str]]]:
    """Return the `env` of each layer, except the base."""
    result = write_layers.files(writing)
    paths = (f"layers/case-{n}/layer.yaml" for n in range(1, len(writing.groups) + 1))
    return [yaml.safe_load(result[path].data).get("env", {}) for path in paths]


def value(rules: list[dict[str, dict[str, str]]], name: str) -> str:
    """Return the value of a variable after all layers, in their order."""
    now = "BASE"
    for rule in (env[name] for env in rules if name in env):
        ((action, text),) = rule.items()
        now = {"set": text, "prepend": f"{text}:{now}", "append": f"{now}:{text}"}[action]
    return now


@pytest.mark.parametrize(
    ("text", "expected", "count"),
    [
        ("WORKDIR /w\nENV A=/a:$A:/b FOO=bar\nRUN true\n", "/a:BASE:/b", 2),
        ("ENV A=/a:$A:/b FOO=bar\n", "/a:BASE:/b", 2),
        ("RUN true\nENV A=/a:$A:/b FOO=bar\nRUN true\n", "/a:BASE:/b", 3),
        ("ENV A=/a:$A:/b FOO=bar\nRUN true\nRUN true\n", "/a:BASE:/b", 2),
        ("ENV A=/a:$A FOO=bar\nENV A=$A:/b\nENV A=/c:$A:/d\nRUN true\n", "/c:/a:BASE:/b:/d", 2),
        ("ENV A=$A:/a FOO=bar\nENV A=/b:$A\nRUN true\nENV A=$A:/c\n", "/b:BASE:/a:/c", 3),
        ("ENV A=/a:$A:/b FOO=bar\nENV A=new\nRUN true\n", "new", 1),
        ("ENV A=/a:$A:/b FOO=bar\nRUN true\nENV A=new\nRUN true\n", "new", 2),
    ],
)
def test_values_before_and_behind_a_list(
    tmp_path: Path, text: str, expected: str, count: int
) -> None:
    rules = headers(read(tmp_path, BASE + text))
    assert (value(rules, "A"), value(rules, "FOO"), len(rules)) == (expected, "bar", count)


def test_before_and_behind_in_what_is_kept_together(tmp_path: Path) -> None:
    """End no layer between RUNs that hand each other files."""
    text = "RUN wget -O /tmp/x u\nENV A=/a:$A:/b\nENV B=1\nRUN tar -xf /tmp/x\n"
    writing = read(tmp_path, BASE + text)
    assert runs(writing) == [[2, 5], []]
    assert value(headers(writing), "A") == "/a:BASE:/b"


@pytest.mark.parametrize(
    "lines", ["export A=/x:$A\nexport A=$A:/y\nexport B=1", "export A=/x:$A:/y B=1"]
)
def test_before_and_behind_in_a_definition_file(tmp_path: Path, lines: str) -> None:
    text = f"{DEF}%post\n true\n%environment\n{lines}\n%runscript\n echo hi\n"
    writing = read(tmp_path, text, "a.def")
    rules = headers(writing)
    assert (value(rules, "A"), value(rules, "B")) == ("/x:BASE:/y", "1")
    assert yaml.safe_load(write_layers.files(writing)["images/case.yaml"].data)["start"]["script"]


@pytest.mark.parametrize(
    ("env", "expected", "count"),
    [("", "BASE", 24), ("ENV A=1\n", "1", 24), ("ENV A=/a:$A:/b\n", "/a:BASE:/b", 23)],
)
def test_of_many_runs_neighbours_are_joined(
    tmp_path: Path, env: str, expected: str, count: int
) -> None:
    """Leave room for one layer, as a header may be left at the end."""
    text = "".join(f"RUN echo {number}\n" for number in range(40))
    writing = read(tmp_path, BASE + env + text)
    assert len(writing.groups) == count
    assert max(map(len, runs(writing))) <= 3
    assert value(headers(writing), "A") == expected


@pytest.mark.parametrize("name", ["COPY", "ADD"])
def test_variables_in_lists_of_words(tmp_path: Path, name: str) -> None:
    (tmp_path / "a b").write_text("")
    text = f'ENV DEST=/opt/x FILE="a b"\nWORKDIR /w\n{name} ["${{FILE}}", "$DEST/"]\n'
    message = code(read(tmp_path, BASE + text))
    assert "copy_into copy-4 /opt/x" in message
    with pytest.raises(UsageError, match="NONE is not in the recipe"):
        read(tmp_path, f'{BASE}{name} ["a b", "$NONE/"]\n')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WORKDIR /tmp/build\nRUN wget u\nRUN tar -xf x\n", [[3, 4]]),
        ("WORKDIR /tmp\nRUN wget u\nWORKDIR /w\nRUN a\nWORKDIR /tmp\nRUN b\n", [[3, 5, 7]]),
        ("ENV B=/var/tmp/b\nRUN cd $B; a\nRUN cd ${B}; b\nRUN c\n", [[3, 4], [5]]),
        ("ARG B=/tmp/b\nRUN cd $B; a\nRUN cd $B; b\nRUN c\n", [[3, 4], [5]]),
        ("WORKDIR /opt/tmp\nRUN wget u\nRUN tar -xf x\n", [[3], [4]]),
    ],
)
def test_runs_that_hand_each_other_files(
    tmp_path: Path, text: str, expected: list[list[int]]
) -> None:
    assert runs(read(tmp_path, BASE + text)) == expected


UPDATE, INSTALL = "RUN apt-get update\n", "RUN apt-get -y install a\n"
BOTH = "RUN apt-get update && apt-get install -y a && rm -rf /var/lib/apt/lists/*\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BOTH + INSTALL, [[2, 3]]),
        (UPDATE + INSTALL + INSTALL + "RUN true\n", [[2, 3, 4], [5]]),
        (BOTH + "RUN x\n" + INSTALL, [[2, 3, 4]]),
        (BOTH + "RUN x\n" + BOTH, [[2], [3], [4]]),
        (BOTH + BOTH + INSTALL, [[2], [3, 4]]),
        (BOTH + "RUN apt-get -y upgrade\n", [[2, 3]]),
        (BOTH + "RUN /usr/bin/apt build-dep x\n", [[2, 3]]),
        (BOTH + 'RUN ["apt-get", "install", "a"]\n', [[2, 3]]),
        (BOTH + "RUN pip install a && rm -rf /var/lib/apt/lists/*\n", [[2], [3]]),
        (BOTH + "RUN apt-get clean && pip list\n", [[2], [3]]),
    ],
)
def test_runs_that_live_on_the_lists_of_apt(
    tmp_path: Path, text: str, expected: list[list[int]]
) -> None:
    """Split before a RUN that makes the lists again: it needs no earlier ones."""
    assert runs(read(tmp_path, BASE + text)) == expected


@pytest.mark.parametrize(
    "text", ["[ -d /x ] || mkdir /x", '[ "$A" = b ] && c', "[[ -d /x ]] || d", "[ -f 'a, b' ]"]
)
def test_a_test_of_the_shell_is_no_list(tmp_path: Path, text: str) -> None:
    writing = read(tmp_path, f"{BASE}RUN {text}\n")
    assert [file.data for file in writing.draft.pieces[0].files] == [f"{text}\n".encode()]


@pytest.mark.parametrize("text", ["['a', 'b']", "[ 'a', 'b' ]", '["a", b]', '[ "a", b ]', '["a"'])
def test_a_list_with_other_quotes(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="is not a list of words in double quotes"):
        read(tmp_path, f"{BASE}RUN {text}\n")


def test_names_that_dockerignore_escapes(tmp_path: Path) -> None:
    """Take them as buildah does (tried)."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("#hash", "!bang", "a*b", "axb", "q"):
        (folder / name).write_text("")
    (folder / ".dockerignore").write_text("\\#hash\n\\!bang\na\\*b\n.dockerignore\nDockerfile\n")
    writing = read(folder, f"{BASE}COPY . /x\n")
    (piece,) = writing.draft.pieces
    assert [file.path for file in piece.files] == ["copy-2/axb", "copy-2/q"]


@pytest.mark.parametrize(
    "line",
    ["one # only", "one #", "one /opt/sp\\ x", "'a b' /x", 'one /o"pt z"', '"a b"c /x', 'one "/x'],
)
def test_words_that_apptainer_reads_in_its_own_way(tmp_path: Path, line: str) -> None:
    for name in ("one", "a b", "a bc"):
        (tmp_path / name).write_text("")
    with pytest.raises(UsageError, match=r"mean something else to Apptainer"):
        read(tmp_path, f"{DEF}%files\n {line}\n", "a.def")


def test_words_of_files(tmp_path: Path) -> None:
    (tmp_path / "a b#c").write_text("")
    message = code(read(tmp_path, f'{DEF}%files\n "a b#c" "/x/d e"\n "a b#c" /x#y\n', "a.def"))
    assert "copy_files copy-4 '/x/d e'" in message
    assert "copy_files copy-5 '/x#y'" in message


@pytest.mark.parametrize(
    ("line", "borrowed"),
    [
        ("COPY one.txt /tmp\n", "/tmp/one.txt"),
        ("COPY one.txt /tmp/\n", "/tmp/one.txt"),
        ("ADD one.txt /var/tmp\n", "/var/tmp/one.txt"),
        ("COPY one.txt /tmp/two\n", "/tmp/two"),
        ("COPY one.txt /tmp/two/\n", "/tmp/two"),
        ("WORKDIR /tmp/two\nCOPY one.txt .\nWORKDIR /\n", "/tmp/two"),
    ],
)
def test_files_removed_after_a_step_are_its_own(tmp_path: Path, line: str, borrowed: str) -> None:
    """Leave the folder /tmp, which may be the machine's."""
    (tmp_path / "one.txt").write_text("one")
    writing = read(tmp_path, BASE + line)
    names = {text for text in code(writing).split("\n") if text.startswith("borrow ")}
    assert names == {f"borrow {borrowed}"}
    assert "is gone when its layer ends" in "\n".join(writing.notes)


@pytest.mark.parametrize("line", ["one.txt /tmp", "one.txt /tmp/", "one.txt /tmp/one.txt"])
def test_files_removed_after_a_definition_file_are_its_own(tmp_path: Path, line: str) -> None:
    (tmp_path / "one.txt").write_text("one")
    writing = read(tmp_path, f"{DEF}%files\n    {line}\n", "case.def")
    assert "borrow /tmp/one.txt\n" in code(writing)


@pytest.mark.parametrize(
    "text",
    [
        'WORKDIR /tmp/app\nRUN true\nCMD ["bash"]\n',
        'COPY one.txt /tmp/start\nCMD ["/tmp/start"]\n',
        'COPY one.txt /tmp/start\nENTRYPOINT ["/tmp/start", "a"]\n',
    ],
)
def test_the_program_that_starts_the_image_is_in_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "one.txt").write_text("one")
    with pytest.raises(UsageError, match="which is gone when its layer ends"):
        read(tmp_path, BASE + text)
