"""Configuration of the image that a Dockerfile starts from: it counts as Docker defines it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.cli.commands.import_ import imported
from sifwright.cli.main import main
from sifwright.errors import UsageError
from sifwright.images.contents.image_tree import BadImage
from sifwright.images.model import Start
from sifwright.images.oci import documents
from tests.registries import Registry, running
from tests.system.apptainer.toys import make_toy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sifwright.recipe_import.layers.write_layers import ImportedImage

BASH = {"shell": ("/bin/bash", "-o", "pipefail", "-c")}


def read(context: Path, text: str, **base_facts: Any) -> ImportedImage:
    """Read a recipe that starts from an image with this configuration."""
    recipe = context / "Dockerfile"
    recipe.write_text(f"FROM tiny:1\n{text}")
    return imported(recipe, "case", look=lambda _: Start(**base_facts))


def reasons(context: Path, text: str, **base_facts: Any) -> list[str]:
    with pytest.raises(UsageError) as caught:
        read(context, text, **base_facts)
    return [
        f"{problem.where.rpartition(':')[2]}: {problem.what}" for problem in caught.value.problems
    ]


def test_its_user_is_the_one_that_runs(tmp_path: Path) -> None:
    for root in ("root", "0", "0:0", "00", "root:0", ""):
        assert users(read(tmp_path, "RUN id\n", user=root)) == []
    for user in ("jovyan", "1000", "00:5"):
        assert users(read(tmp_path, "RUN id\n", user=user)) == [f"user {user}"]
    text = "USER root\nRUN id\nUSER jovyan\nRUN id\n"
    assert users(read(tmp_path, text, user="me")) == ["user me", "user ''", "user jovyan"]
    home = {"HOME": "/root"}
    assert reasons(tmp_path, "RUN id\n", user="me", environment=home) == [
        "2: RUN as user me cannot be carried"
    ]


def users(writing: ImportedImage) -> list[str]:
    lines = (line for piece in writing.draft.pieces for line in piece.code)
    return [line for line in lines if line.startswith("user ")]


def test_its_environment_is_in_the_words_of_the_recipe(tmp_path: Path) -> None:
    """Compare it in each build; an unset variable is empty, as for Docker."""
    (tmp_path / "one").write_text("")
    text = "ENV PATH=$DIR/bin:$PATH\nCOPY one $DIR/$NONE/\nRUN id\n"
    writing = read(tmp_path, text, environment={"DIR": "/opt/a", "PATH": "/bin"})
    codes = [line for piece in writing.draft.pieces for line in piece.code]
    assert codes[:3] == [
        "base_variable DIR /opt/a",
        "variable PATH prepend /opt/a/bin",
        "base_variable DIR /opt/a",
    ]
    assert "copy_into copy-3 /opt/a" in codes
    assert any("$NONE is empty" in note for note in writing.notes)
    with pytest.raises(UsageError, match="NEVER is not in the recipe"):
        read(tmp_path, "ARG NEVER\nENV A=$NEVER\n", environment={"NEVER": "x"})
    with pytest.raises(UsageError, match="PATH is not in the recipe"):
        read(tmp_path, "ENV PATH=/a:$PATH\nENV A=$PATH\n", environment={"PATH": "/bin"})


def test_its_onbuild_commands_are_refused(tmp_path: Path) -> None:
    message = reasons(tmp_path, "RUN id\n", triggers=("COPY . /app",))
    assert message == [
        "1: FROM tiny:1: its ONBUILD is an instruction of this recipe: 'COPY . /app'"
    ]


def test_its_shell_reads_texts_only(tmp_path: Path) -> None:
    """Use it until another SHELL, and in CMD as well."""
    text = 'RUN id\nRUN ["id"]\nCMD id\nSHELL ["/bin/sh", "-c"]\nRUN id\n'
    writing = read(tmp_path, text, **BASH)
    codes = [line for piece in writing.draft.pieces for line in piece.code]
    bash = "/bin/bash -o pipefail -c"
    assert codes == [f"run / run-2.sh {bash}", "run_words / id", "run / run-6.sh /bin/sh -c"]
    assert writing.draft.start is not None
    assert writing.draft.start.cmd == (*BASH["shell"], "id")


def test_a_folder_that_cannot_be_one(tmp_path: Path) -> None:
    (message,) = reasons(tmp_path, "RUN id\n", folder="/a/../..")
    assert message.startswith("1: WORKDIR: '/a/../..'")


def test_a_folder_that_is_nothing_is_the_one_before(tmp_path: Path) -> None:
    """Keep the folder before if a variable's name gives no folder."""
    writing = read(tmp_path, "ENV NONE=\nWORKDIR $NONE\nRUN id\n", folder="/work")
    codes = "\n".join(line for piece in writing.draft.pieces for line in piece.code)
    assert "run /work run-4.sh" in codes
    assert codes.count("NONE") == codes.count("variable NONE set ''") == 1


def test_notes_say_what_it_decided(tmp_path: Path) -> None:
    writing = read(tmp_path, "USER 0\nRUN id\n", folder="/work", user="me")
    results = [note.partition("Dockerfile:")[2] for note in writing.notes]
    assert "1: WORKDIR is that of the image: '/work'" in results
    assert "1: USER is that of the image: 'me'" in results


@pytest.mark.parametrize("folder", ["", "/", "//"])
def test_without_a_workdir_it_starts_in_the_root_folder(tmp_path: Path, folder: str) -> None:
    (tmp_path / "one").write_text("")
    writing = read(tmp_path, "COPY one .\nWORKDIR app\nRUN id\n", folder=folder)
    codes = [line for piece in writing.draft.pieces for line in piece.code]
    assert codes == [
        "folder /",
        "copy_into copy-2 /",
        "folder /app",
        "run /app run-4.sh /bin/sh -c",
    ]


def test_it_is_asked_whatever_else_is_wrong(tmp_path: Path) -> None:
    """Ask for every image, unless its name is refused."""
    messages = reasons(tmp_path, "RUM id\nCOPY Dockerfile here\nRUN id\n", triggers=("RUN x",))
    assert [message.partition(":")[0] for message in messages] == ["1", "2"]
    recipe = tmp_path / "Dockerfile"
    recipe.write_text("FROM alpine\nRUN id\n")
    with pytest.raises(UsageError, match="no bash"):
        imported(recipe, "case", look=lambda _: pytest.fail("it is asked for"))


def test_a_registry_that_is_not_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, recipe = brought(tmp_path, "127.0.0.1:9/tiny:1", "--offline")
    assert code == 0
    (note,) = (line for line in capsys.readouterr().out.splitlines() if "are not known" in line)
    assert note.startswith(f"note: {recipe}:1: its WORKDIR, USER, SHELL, ENV, ")
    assert note.endswith("(--offline): RUN starts in / as root, with /bin/sh")


def brought(folder: Path, name: str, *options: str, text: str = "") -> tuple[int, Path]:
    """Return the status of a whole import that starts from an image of this name."""
    make_toy(folder / "project", folder / "none.sif")
    recipe = folder / "Dockerfile"
    recipe.write_text(f"FROM {name}\n{text}RUN id\n")
    words = ["--project", str(folder / "project"), "import", str(recipe), "--name", "case"]
    return main([*words, *options]), recipe


class Centre:
    """A registry that is found through the mirrors file, and imports that ask it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.place, self.capsys = folder, capsys
        self.registry = Registry()

    def refused(self, name: str) -> str:
        """Return the message, which names only the cause; nothing is written."""
        path = self.place / name.replace(":", "-")
        path.mkdir()
        code, recipe = brought(path, f"centre.example/{name}", text="COPY Dockerfile here\n")
        message = self.capsys.readouterr().err
        assert (code, message.count("sifwright: ")) == (2, 1)
        assert message.startswith(f"sifwright: {recipe}:1: FROM centre.example/{name}: ")
        assert not (path / "project" / "defs" / "images" / "case.yaml").exists()
        return message


@pytest.fixture
def centre(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Centre]:
    result = Centre(tmp_path, capsys)
    with running(result.registry):
        path = tmp_path / "mirrors.json"
        path.write_text(json.dumps({"oci": {"centre.example": result.registry.url}}))
        monkeypatch.setenv("SIFWRIGHT_MIRRORS", str(path))
        yield result


@pytest.mark.parametrize(("status", "fix"), [(403, "Log in"), (500, "Check the network")])
def test_a_registry_that_does_not_say(centre: Centre, status: int, fix: str) -> None:
    """Refuse to guess a configuration that may change the image."""
    centre.registry.failures += [(status, {})] * 20
    message = centre.refused("tiny:1")
    assert all(text in message for text in (f"HTTP {status}", fix, "With --offline it is imported"))


@pytest.mark.parametrize(
    ("name", "subject", "fix"),
    [
        ("none:1", "there is no image", "Name an image that is there"),
        ("tiny:2", "there is no 2.", "Name an image that is there"),
        ("tiny:arm", "there is none for x86_64", "Name an image for this processor."),
    ],
)
def test_an_image_that_is_not_there_or_not_for_us(
    centre: Centre, name: str, subject: str, fix: str
) -> None:
    """Refuse the image: an import without its configuration could not be built."""
    centre.registry.push("tiny", "1", b"")
    centre.registry.push("tiny", "arm", b"", processor="arm64")
    message = centre.refused(name)
    assert all(text in message for text in (subject, fix))
    assert "--" not in message
    assert brought(centre.place, "centre.example/tiny:1")[0] == 0


def test_programs_are_read_as_docker_reads_them() -> None:
    """Take a text as one word; leave all other kinds to the recipe's author."""
    known: dict[str, Any] = {"architecture": "amd64", "config": {"Entrypoint": "/a b", "Shell": []}}
    result = documents.start(known, "x86_64")
    assert (result.entry, result.shell) == (("/a b",), ())
    for name in ("Entrypoint", "Shell", "OnBuild", "WorkingDir"):
        odd = {"architecture": "amd64", "config": {name: 7, "User": "me"}}
        assert documents.config(odd, "x86_64").user == "me"
        with pytest.raises(BadImage, match=f"has 7 where {name} should be"):
            documents.start(odd, "x86_64")
