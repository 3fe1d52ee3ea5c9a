"""Constructs of a definition file after the import: arguments, sections, the base's ENV."""

from pathlib import Path

import pytest

from sifwright.cli.commands.import_ import imported
from sifwright.errors import UsageError
from sifwright.images.model import Start
from sifwright.recipe_import.draft import Wanted
from sifwright.recipe_import.layers.write_layers import ImportedImage

BASE = "Bootstrap: docker\nStage: only\nFrom: tiny:{{ TAG }}\n%arguments\n TAG=1-{{B}}\n B = 2\n"


def read(folder: Path, text: str, **given: str) -> ImportedImage:
    (folder / "case.def").write_text(text)
    message = Start(environment={"DIR": "/opt/a", "PATH": "/bin"})
    return imported(folder / "case.def", "case", "", lambda _: message, Wanted(arguments=given))


def test_arguments_are_filled_in_as_apptainer_does(tmp_path: Path) -> None:
    """Fill in one level, not behind '#' but behind '#!', and only with a value."""
    text = f"{BASE}%post\n echo {{{{ B }}}} # {{{{ B }}}} {{{{ NONE }}}}\n #!{{{{B}}}}\n"
    writing = read(tmp_path, text, B="3")
    assert writing.draft.bootstrap == {"Bootstrap": "docker", "From": "tiny:1-3"}
    (file,) = (file for piece in writing.draft.pieces for file in piece.files)
    assert file.data == b" echo 3 # {{ B }} {{ NONE }}\n #!3\n\n"
    with pytest.raises(UsageError, match=r"\{\{ C \}\} has no value"):
        read(tmp_path, f"{BASE}%post\n echo {{{{ C }}}}\n")
    with pytest.raises(UsageError, match="--build-arg D: the recipe has no such argument"):
        read(tmp_path, BASE, D="1")


def test_sections_of_one_name_are_one_script(tmp_path: Path) -> None:
    text = f"{BASE}%post\n a\n%environment\n A=1\n%post\n b\n%environment\n export A\n%nothing\n"
    with pytest.raises(UsageError, match="15: %nothing"):
        read(tmp_path, text)
    writing = read(tmp_path, text.replace("%nothing\n", "%help\n x\n%help\n y\n"))
    (file,) = (file for piece in writing.draft.pieces for file in piece.files)
    assert (file.path, file.data.split()) == ("post-7.sh", [b"a", b"b"])
    rules = [rule for piece in writing.draft.pieces for rule in piece.rules]
    assert [(rule.name, rule.value) for rule in rules] == [("A", "1")]
    assert writing.draft.help == ["x", "y"]


def test_the_environment_of_the_base_image(tmp_path: Path) -> None:
    text = f'{BASE}%environment\n export PATH=$DIR/bin:$PATH LIST="3.5;8.0"\n'
    (piece,) = read(tmp_path, text).draft.pieces
    assert piece.code == ("base_variable DIR /opt/a",)
    assert [(rule.action, rule.value) for rule in piece.rules] == [
        ("prepend", "/opt/a/bin"),
        ("set", "3.5;8.0"),
    ]
    bare = f"{BASE}%environment\n PATH=/a:$PATH\n DIR=/b\n LEFT=c\n"
    (piece,) = read(tmp_path, bare).draft.pieces
    assert [(rule.name, rule.value) for rule in piece.rules] == [("PATH", "/a"), ("DIR", "/b")]
    with pytest.raises(UsageError, match="NONE is not in the recipe"):
        read(tmp_path, f"{BASE}%environment\n export A=$NONE\n")


def test_a_file_of_from_lies_in_the_context(tmp_path: Path) -> None:
    writing = read(tmp_path, "Bootstrap: localimage\nFrom: ./base.sif\n%post\n true\n")
    assert writing.draft.bootstrap["From"] == str(tmp_path / "base.sif")


@pytest.mark.parametrize(
    "text",
    [
        f"%arguments\n TAG=1\n A={'{{ B }}' * 5_000}\n B={'x' * 1_000}\n%post\n echo {{{{ A }}}}\n",
        "%arguments\n TAG=1\n%environment\n export B="
        + "x" * 4_000
        + "".join(f"\n export A{n}=x$B" for n in range(1_100)),
    ],
    ids=["arguments", "environment"],
)
def test_all_values_of_a_recipe_have_one_limit(tmp_path: Path, text: str) -> None:
    header = "Bootstrap: docker\nFrom: tiny:{{ TAG }}\n"
    with pytest.raises(UsageError, match="the values of variables have more than 4 MiB together"):
        read(tmp_path, f"{header}{text}\n")


@pytest.mark.timeout(600)
def test_a_recipe_as_long_as_it_may_be_takes_seconds(tmp_path: Path) -> None:
    """Take linear time: the square of the length would take hours."""
    text = f"{BASE}%post\n {'{{ B }}' * 60_000}\n # {'{{ B }}' * 60_000}\n"
    assert read(tmp_path, text).draft.bootstrap["From"] == "tiny:1-2"
