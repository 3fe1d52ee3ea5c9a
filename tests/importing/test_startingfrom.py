"""What the image that a Dockerfile starts from says of itself decides, as Docker lets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sifwright.cli import main
from sifwright.errors import UsageError
from sifwright.imagesource.model import Config
from sifwright.importing.command import imported
from tests.conftest import run
from tests.engine.toys import make_toy

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.importing.layers import Writing
    from tests.importing.building import Workshop

BASH = {"shell": ("/bin/bash", "-o", "pipefail", "-c")}

SH = {"shell": ("/bin/sh", "-c")}


def read(place: Path, text: str, **said: Any) -> Writing:
    """A recipe that starts from an image that says this of itself."""
    recipe = place / "Dockerfile"
    recipe.write_text(f"FROM tiny:1\n{text}")
    config = Config(processor="x86_64", **said)
    return imported(recipe, "case", look=lambda _: config)


def reasons(place: Path, text: str, **said: Any) -> list[str]:
    with pytest.raises(UsageError) as caught:
        read(place, text, **said)
    return [f"{one.where.rpartition(':')[2]}: {one.what}" for one in caught.value.problems]


def test_its_user_is_the_one_that_would_run(tmp_path: Path) -> None:
    assert reasons(tmp_path, "RUN id\n", user="jovyan") == [
        "2: RUN as user jovyan: steps run as root"
    ]
    for root in ("root", "0", "0:0", ""):
        assert read(tmp_path, "RUN id\n", user=root).draft.pieces
    assert read(tmp_path, "USER root\nRUN id\nUSER jovyan\n", user="jovyan").draft.pieces


def test_what_waits_in_it_is_refused(tmp_path: Path) -> None:
    found = reasons(tmp_path, "RUN id\n", triggers=("COPY . /app",))
    assert found == ["1: FROM tiny:1: its ONBUILD is an instruction of this recipe: 'COPY . /app'"]


def test_its_shell_would_read_texts_only(tmp_path: Path) -> None:
    (found,) = reasons(tmp_path, 'RUN id\nCMD ["a"]\n', **BASH)
    assert found.startswith("1: FROM tiny:1: its SHELL is ['/bin/bash', '-o', 'pipefail', '-c']")
    assert reasons(tmp_path, "CMD id\n", **BASH) == [found]
    assert read(tmp_path, 'RUN ["id"]\nCMD ["a"]\n', **BASH).draft.pieces
    assert read(tmp_path, "RUN id\n", **SH).draft.pieces


def test_a_folder_that_cannot_be_one(tmp_path: Path) -> None:
    (found,) = reasons(tmp_path, "RUN id\n", folder="/a/../..")
    assert found.startswith("1: WORKDIR: '/a/../..'")


def test_a_folder_that_is_nothing_is_the_one_before(tmp_path: Path) -> None:
    """What its variable's name says is no folder."""
    writing = read(tmp_path, "ENV NONE=\nWORKDIR $NONE\nRUN id\n", folder="/work")
    codes = "\n".join(line for piece in writing.draft.pieces for line in piece.code)
    assert "run /work run-4.sh" in codes
    assert "NONE" not in codes.replace("NONE=", "")


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ('CMD ["a b"]\n', '#!/bin/sh\n[ "$#" -gt 0 ] || set -- \'a b\'\nexec start it "$@"\n'),
        ('ENTRYPOINT ["own"]\n', '#!/bin/sh\nexec own "$@"\n'),
        ("RUN true\n", ""),
    ],
    ids=["command", "own", "none"],
)
def test_its_entry_point_starts_a_command(tmp_path: Path, text: str, script: str) -> None:
    assert read(tmp_path, text, entry=("start", "it")).draft.runscript == script


def test_notes_say_what_it_decided(tmp_path: Path) -> None:
    writing = read(tmp_path, "USER 0\nRUN id\n", folder="/work", user="me")
    said = [note.partition("Dockerfile:")[2] for note in writing.notes]
    assert "1: WORKDIR is that of the image: '/work'" in said
    assert "1: USER is that of the image: 'me'" in said


@pytest.mark.parametrize("offline", [True, False])
def test_a_registry_that_is_not_asked_or_does_not_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, offline: bool
) -> None:
    make_toy(tmp_path / "project", tmp_path / "none.sif")
    recipe = tmp_path / "Dockerfile"
    recipe.write_text("FROM 127.0.0.1:9/tiny:1\nRUN id\n")
    words = ["--project", str(tmp_path / "project"), "import", str(recipe), "--name", "case"]
    assert main([*words, *["--offline"] * offline]) == 0
    (note,) = (line for line in capsys.readouterr().out.splitlines() if "is not known" in line)
    assert note.startswith(f"note: {recipe}:1: what it says of WORKDIR, USER, ")
    assert ("(--offline)" in note) is offline
    assert ("refused" in note) is not offline
    assert note.endswith("RUN starts in / as root, with /bin/sh")


@pytest.mark.build
def test_docker_and_our_script_start_the_same(workshop: Workshop, tmp_path: Path) -> None:
    """ENTRYPOINT of the base image, CMD of the recipe, in the base image's WORKDIR."""
    (tmp_path / "Dockerfile").write_text('FROM tiny:1-says\nRUN true\nCMD ["a  b", "c"]\n')
    recipe = workshop.copy(tmp_path / "Dockerfile", "started")
    workshop.ours(recipe)
    sif = recipe.parent.parent / "build" / "local" / "case" / "image.sif"
    exec_ = [workshop.engine, "exec", "--containall", "--no-home", sif, "/opt/sifwright/run/case"]
    assert run(exec_).stdout.splitlines() == ["/workspace/here", "<a  b>", "<c>"]
    assert run([*exec_, "other"]).stdout.splitlines() == ["/workspace/here", "<other>"]
