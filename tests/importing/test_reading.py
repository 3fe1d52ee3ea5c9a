"""What becomes of single instructions: their layers, the headers of these, and their words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from sifwright.errors import UsageError
from sifwright.importing import layers
from sifwright.importing.command import imported

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.importing.layers import Writing

BASE = "FROM debian:12\n"
DEF = "Bootstrap: docker\nFrom: debian:12\n"


def read(place: Path, text: str, name: str = "Dockerfile") -> Writing:
    (place / name).write_text(text)
    return imported(place / name, "case")


def code(writing: Writing) -> str:
    return "\n".join(line for piece in writing.draft.pieces for line in piece.code)


def runs(writing: Writing) -> list[list[int]]:
    """The lines of the RUNs of each layer."""
    return [[piece.line for piece in pieces if piece.is_run] for pieces in writing.groups]


def headers(writing: Writing) -> list[dict[str, dict[str, str]]]:
    """The `env` of each layer, but for the base."""
    made = layers.files(writing)
    paths = (f"layers/case-{n}/layer.yaml" for n in range(1, len(writing.groups) + 1))
    return [yaml.safe_load(made[path].data).get("env", {}) for path in paths]


def value(found: list[dict[str, dict[str, str]]], name: str) -> str:
    """What the layers make of a variable, one after the other."""
    now = "BASE"
    for rule in (env[name] for env in found if name in env):
        ((action, text),) = rule.items()
        now = {"set": text, "prepend": f"{text}:{now}", "append": f"{now}:{text}"}[action]
    return now


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
    """As buildah takes them (tried)."""
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
    said = code(read(tmp_path, f'{DEF}%files\n "a b#c" "/x/d e"\n "a b#c" /x#y\n', "a.def"))
    assert "copy_files copy-4 '/x/d e'" in said
    assert "copy_files copy-5 '/x#y'" in said
