"""An imported image starts what its recipe starts, as a SIF and as a Docker image."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sifwright.cli.commands.import_ import imported
from sifwright.cli.main import main
from sifwright.errors import CatalogError
from sifwright.images.model import SourceError, Start
from sifwright.recipe_import.layers import write_layers
from sifwright.recipe_import.layers.write_layers import ImportedImage
from sifwright.render.build_files import runscript
from tests.system.apptainer.toys import make_toy

DEF = "Bootstrap: docker\nFrom: debian:12\n"
SHELL = "#!/bin/sh\n"


def read(context: Path, text: str, name: str = "Dockerfile", **base_facts: Any) -> ImportedImage:
    """Read a recipe that starts from an image with this configuration."""
    (context / name).write_text(text if name != "Dockerfile" else f"FROM tiny:1\n{text}")
    return imported(context / name, "case", look=lambda _: Start(**base_facts))


def script(writing: ImportedImage) -> str:
    return runscript(writing.draft.start) if writing.draft.start else ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('CMD ["a b"]\n', "[ \"$#\" -gt 0 ] || set -- 'a b'\nexec start it \"$@\"\n"),
        ('ENTRYPOINT ["own"]\n', 'exec own "$@"\n'),
        ('ENTRYPOINT []\nCMD ["bash"]\n', '[ "$#" -gt 0 ] || set -- bash\nexec "$@"\n'),
        ('CMD ["a"]\nENTRYPOINT []\n', '[ "$#" -gt 0 ] || set -- a\nexec "$@"\n'),
        ("RUN true\n", '[ "$#" -gt 0 ] || set -- base words\nexec start it "$@"\n'),
        ("ENTRYPOINT []\n", ""),
        ("ENTRYPOINT echo $0\n", "exec /bin/sh -c 'echo $0' \"$@\"\n"),
        ('ENTRYPOINT ["a"]\nCMD b\n', '[ "$#" -gt 0 ] || set -- /bin/sh -c b\nexec a "$@"\n'),
    ],
    ids=["command", "own", "reset", "reset-behind", "neither", "nothing", "text", "command-text"],
)  # fmt: skip
def test_dockers_rules(tmp_path: Path, text: str, expected: str) -> None:
    writing = read(tmp_path, text, entry=("start", "it"), cmd=("base", "words"))
    assert script(writing) == (f"{SHELL}{expected}" if expected else "")


def test_it_starts_in_the_last_workdir(tmp_path: Path) -> None:
    writing = read(tmp_path, 'WORKDIR /a b\nCMD ["c"]\n')
    assert script(writing).startswith(f"{SHELL}cd '/a b' || exit\n")
    writing = read(tmp_path, "WORKDIR /tmp/x\n", cmd=("c",))
    assert "cd" not in script(writing)


@pytest.mark.parametrize("cmd", [("bash",), ("/bin/bash",), ()])
def test_a_shell_is_what_starts_anyway(tmp_path: Path, cmd: tuple[str, ...]) -> None:
    assert script(read(tmp_path, "RUN true\n", cmd=cmd)) == ""
    assert script(read(tmp_path, f"{DEF}%post\n true\n", "a.def", cmd=cmd)) == ""


def test_a_definition_file_without_a_runscript(tmp_path: Path) -> None:
    """Keep the runscript of the image below, as Apptainer does, but not its folder."""
    writing = read(tmp_path, f"{DEF}%post\n true\n", "a.def", cmd=("a", "b"), folder="/w")
    assert script(writing) == f'{SHELL}[ "$#" -gt 0 ] || set -- a b\nexec "$@"\n'


def test_a_script_is_written_as_its_lines(tmp_path: Path) -> None:
    writing = read(tmp_path, f"{DEF}%runscript\n    if true; then\n        date\n    fi\n", "a.def")
    text = write_layers.files(writing)["images/case.yaml"].data.decode()
    assert "  script: |\n    #!/bin/sh\n    if true; then\n            date\n        fi\n" in text


def test_unknown_images_below(tmp_path: Path) -> None:
    def silent(_: str) -> Start:
        raise SourceError.of("HTTP 401")

    (tmp_path / "a.def").write_text(f"{DEF}%post\n true\n")
    local = tmp_path / "b.def"
    local.write_text("Bootstrap: localimage\nFrom: /x.sif\n%post\n true\n")
    folder = [
        imported(tmp_path / "a.def", "case"),
        imported(tmp_path / "a.def", "case", look=silent),
        imported(local, "case", look=lambda _: pytest.fail("a file is no name")),
    ]
    for writing in folder:
        assert writing.draft.start is None
        assert any("there is no %runscript: it starts bash" in note for note in writing.notes)
    local.write_text(f"{local.read_text()}%runscript\n date\n")
    assert imported(local, "case").notes == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    make_toy(tmp_path / "project", tmp_path / "none.sif")
    return tmp_path / "project"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('ENTRYPOINT ["a b", "c"]\nCMD ["d", "e\\n%f"]\n', "'a b' c d 'e %f'"),
        ("CMD date\n", "/bin/sh -c date"),
        (f'CMD ["{"x" * 200}"]\n', f"{'x' * 99}…"),
        ("RUN true\n", "bash"),
    ],
)
def test_an_import_says_what_the_image_starts(
    project: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "Dockerfile").write_text(f"FROM debian:12\n{text}")
    words = ["import", str(project / "Dockerfile"), "--name", "case", "--offline", "--dry-run"]
    assert main(["--project", str(project), *words]) == 0
    assert f"\nstarts: {message}\n" in capsys.readouterr().out


@pytest.fixture
def definition(project: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Import a recipe, and render it by the command that users have."""

    def make(name: str, text: str, *options: str) -> str:
        (project / name).write_text(text)
        project_options = ["--project", str(project)]
        words = [*project_options, "import", str(project / name), "--name", "case", "--offline"]
        assert main(words) == 0
        capsys.readouterr()
        assert (
            main([*project_options, "render", "local", "case", *(options or ["--single-file"])])
            == 0
        )
        return capsys.readouterr().out

    return make


def test_a_recipe_of_nothing_else(definition: Callable[..., str]) -> None:
    text = definition("Dockerfile", 'FROM debian:12\nENTRYPOINT ["/bin/echo", "hi"]\n')
    assert '\n%runscript\n    exec /opt/sifwright/runscript "$@"\n' in text
    assert '\nexec /bin/echo hi "$@"\n' in text


def test_a_docker_image_has_its_own_words(project: Path, definition: Callable[..., str]) -> None:
    text = 'WORKDIR /app\nENTRYPOINT ["a", "b c"]\nCMD ["%d", "\\n"]\n'
    text = f"FROM debian@sha256:{'0' * 64}\n{text}"
    target = project / "docker"
    definition("Dockerfile", text, "--format", "dockerfile", "--output", str(target))
    message = (target / "Dockerfile").read_text()
    assert '\nWORKDIR /app\nENTRYPOINT ["a", "b c"]\nCMD ["%d", "\\n"]\n' in message


def test_help_tells_what_the_image_has(definition: Callable[..., str]) -> None:
    text = f"{DEF}%help\n    Our tool:\n      # first\n\n\ttab\n%runscript\n    date\n"
    shown = definition("x.def", text).partition("\n%help\n")[2]
    assert shown.startswith("    Our tool:\n      # first\n")
    assert "apptainer run IMAGE" in shown
    assert "conda-python" not in shown


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        ({"start": {"script": "#!/bin/sh\n", "cmd": []}}, "exactly one of these is needed"),
        ({"start": {"entrypoint": ["a"]}}, "'cmd' is missing, needed by 'entrypoint'"),
        ({"start": {"cmd": ["a"], "workdir": "b"}}, "'b' does not fit"),
        ({"start": {"script": "date\n"}}, "does not fit"),
        ({"help": ["%post"]}, "does not fit"),
        ({"help": ["{{ x }}"]}, "which Apptainer replaces"),
    ],
)
def test_programs_that_no_image_can_start(
    project: Path, configuration: dict[str, Any], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = {"description": "odd", "layers": [{"layer": "base-local"}], **configuration}
    (project / "defs" / "images" / "odd.yaml").write_text(json.dumps(document))
    assert main(["--project", str(project), "plan", "local", "odd"]) == CatalogError.exit_code
    assert reason in capsys.readouterr().err
