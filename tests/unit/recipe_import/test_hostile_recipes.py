"""A recipe may be anything: an error with its file and line, a status, and nothing written."""

import gzip
import lzma
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sifwright.cli.main import main
from tests.system.apptainer.toys import make_toy
from tests.system.importing.packing import NOISE, tar

BASE = "FROM debian:12\n"
DEF = "Bootstrap: docker\nFrom: debian:12\n"
# A recipe, and what is said of it after the name of its file.
RECIPES = {
    "empty": (b"", ": an empty file"),
    "blank": (b"\n \n\t\n", ": an empty file"),
    "binary": (b"\x7fELF\x02\x01\x01\x00" * 100, ":1: a character that cannot be printed"),
    "not-utf-8": (b"FROM debian:12\nRUN echo \xff\n", ":2: not UTF-8 text"),
    "nul": (b"FROM debian:12\nRUN echo a\0b\n", ":2: a character that cannot be printed: '\\x00'"),
    "escape": (b"FROM debian:12\nRUN echo \x1b[2K\n", ":2: a character that cannot be printed"),
    "hidden-line": ("FROM debian:12\nENV A=b\u2028RUN=x\n".encode(), ":2: a character"),
    "carriage-return": (b"FROM debian:12\n# x\rRUN rm -rf /\n", ":2: a character"),
    "right-to-left": ("FROM debian:12\nRUN a \u202e b\n".encode(), ":2: a character"),
    "huge": (b"FROM debian:12\n" + b"# x\n" * (1 << 19), ": larger than 1 MiB"),
    "long-env": (f"{BASE}ENV A={'x' * 5000}\n".encode(), ":2: ENV: 'xxx"),
    "no-from": (b"RUN echo hi\n", ":1: no FROM"),
    "only-comments": (b"# a\n# b\n", ":1: no FROM"),
    "from-nothing": (b"FROM\n", ":1: FROM ''"),
    "from-option": (b"FROM -oProxyCommand=x\n", ":1: FROM '-oProxyCommand=x' is not the name"),
    "from-comment": (b"FROM debian:12#x\n", ":1: FROM 'debian:12#x' is not the name of an image"),
    "copy-up": (f"{BASE}COPY ../secret /\n".encode(), ":2: COPY: '../secret' leads out of"),
    "copy-up-deep": (f"{BASE}COPY a/../../x /\n".encode(), ":2: COPY: 'a/../../x' leads out of"),
    "copy-absolute": (f"{BASE}COPY /proc/self /x\n".encode(), ":2: COPY: there is no '/proc/self'"),
    "copy-link": (f"{BASE}COPY outside /x\n".encode(), ":2: COPY: 'outside' is a link that leads"),
    "copy-dir-link": (f"{BASE}COPY . /x\n".encode(), ":2: COPY: 'etc' is a link that leads out of"),
    "copy-below-link": (f"{BASE}COPY etc/passwd /x\n".encode(), ":2: COPY: 'etc/passwd' is a link"),
    "copy-fifo": (f"{BASE}COPY fifo /x\n".encode(), ":2: COPY: 'fifo' is not a regular file"),
    "copy-large": (f"{BASE}COPY large /x\n".encode(), ":2: COPY: 'large' is larger than 4 MiB"),
    "copy-new-line": (f"{BASE}COPY folder /x\n".encode(), ":2: COPY: the file name"),
    "copy-to-up": (f"{BASE}COPY good /x/../../y\n".encode(), ":2: COPY: '/x/../../y': '..'"),
    "copy-to-build": (f"{BASE}COPY good /.sifwright/step\n".encode(), ":2: COPY: '/.sifwright/step'"),  # noqa: E501
    "copy-to-engine": (f"{BASE}COPY good //./.singularity.d/x\n".encode(), ":2: COPY: "),
    "copy-one-word": (f"{BASE}COPY good\n".encode(), ":2: COPY: needs a source and a target"),
    "copy-ignored": (f"{BASE}COPY ignored /x\n".encode(), ":2: COPY: there is no 'ignored'"),
    "two-options": (f"{BASE}ARG A_B=1\nARG a_b=2\n".encode(), ":3: ARG a_b: another ARG is"),
    "option-twice": (f"{BASE}ARG A=1\nRUN x\nARG A=2\n".encode(), ":4: ARG A: another ARG is"),
    "doubtful": (f"{BASE}RUN echo a\\\\\n".encode(), ":2: two backslashes at the end"),
    "flag-of-two": (f"{BASE}ADD --keep-git-dir=true x y\n".encode(), ":2: ADD --keep-git-dir: it"),
    "no-end": (f"{BASE}RUN cat <<EOF\ntrue\n".encode(), ":2: RUN with a here-document (<<) th"),
    "copy-filled": (f"{BASE}COPY <<E /x\n$A\nE\n".encode(), ":2: COPY with a here-document (<<) "),
    "shell-windows": (f'{BASE}SHELL ["cmd", "/S"]\n'.encode(), ':2: SHELL: ["cmd", "/S"]: n'),
    "mount-root": (f"{BASE}RUN --mount=type=tmpfs,target=/ x\n".encode(), ":2: RUN: --mount co"),
    "mount-stage": (f"{BASE}RUN --mount=from=a,target=/x y\n".encode(), ":2: RUN: --mount of"),
    "two-stages": (b"FROM a AS x\nFROM b AS X\n", ":2: a second stage x"),
    "def-tilde": (f"{DEF}%environment\n export A=~/x\n".encode(), ":4: %environment: '~/x'"),
    "def-backslash": (f"{DEF}%environment\n export A=a\\ b\n".encode(), ":4: %environment: 'a"),
    "def-all-files": (f"{DEF}%files\n . /x\n".encode(), ":4: %files: all of the recipe's folder"),
    "open-quote": (f'{BASE}ENV A="b\n'.encode(), ":2: ENV: a quote or backslash that leads"),
    "bad-name": (f"{BASE}ENV 'A;x'=b\n".encode(), ":2: ENV: ''A;x'' is not the name of a variable"),
    "shells-name": (f"{BASE}ENV A=1 SHELLOPTS=x\n".encode(), ":2: ENV: 'SHELLOPTS' is a name that"),
    "add-cut": (f"{BASE}ADD good cut.tar.gz /x/\n".encode(), ":2: ADD: the archive ends early"),
    "add-bomb": (f"{BASE}ADD bomb.tar.xz /x\n".encode(), ":2: ADD: unpacked, the archive is lar"),
    "add-zstd": (f"{BASE}ADD a.tar.zst /x\n".encode(), ":2: ADD: of zstd's archives some builders"),
    "bad-option": (f"{BASE}ARG ÄÖ=1\n".encode(), ":2: ARG"),
    "workdir-up": (f"{BASE}WORKDIR /a/../..\n".encode(), ":2: WORKDIR: '/a/../..'"),
    "braces": (f"{BASE}ENV A=${{B:?x}}\n".encode(), ":2: ENV: what this means is not clear"),
    "post-setup": (b"Bootstrap: docker\nFrom: debian:12\n%post\n true\n # x\n %setup\n rm -rf /\n",
                   ":6: %setup runs on the machine itself"),
    "post-argument": (b"Bootstrap: docker\nFrom: debian:12\n%post\n echo {{ x }}\n", ":4: {{ x }}"),
    "from-second": (b"Bootstrap: docker\nFrom: debian:12\nFrom: other\n%post\n", ":3: a second From"),  # noqa: E501
    "files-round": (b"Bootstrap: docker\nFrom: debian:12\n%files\n round /x\n", ":4: %files: 'round"),  # noqa: E501
    "def-windows": (b"Bootstrap: docker\r\nFrom: debian:12\r\n%post\r\n", ":1: a line end of Windows"),  # noqa: E501
    "def-shell": (b"Bootstrap: docker\nFrom: debian:12\n%post -c /bin/sh;x\n true\n", ":3: %post -c"),  # noqa: E501
    "def-unknown": (b"Bootstrap: docker\nFrom: debian:12\n%posst\n true\n", ":3: %posst is no secti"),  # noqa: E501
}  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    make_toy(folder, folder / "none.sif")
    (folder / "secret").write_text("secret")
    path = folder / "recipe"
    (path / "folder").mkdir(parents=True)
    (path / "folder" / "a\nRUN x").write_text("")
    (path / "good").write_text("good")
    (path / "outside").symlink_to("../secret")
    (path / "etc").symlink_to("/etc")
    (path / "ignored").mkdir()
    (path / "ignored" / "file").write_text("")
    (path / ".dockerignore").write_text("ignored\n")
    (path / "round").mkdir()
    (path / "round" / "again").symlink_to(".")
    os.mkfifo(path / "fifo")
    (path / "cut.tar.gz").write_bytes(gzip.compress(tar(NOISE))[:-2000])
    (path / "bomb.tar.xz").write_bytes(lzma.compress(tar(bytes(64 << 20))))
    (path / "a.tar.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    with (path / "large").open("wb") as file:
        file.truncate((4 << 20) + 1)
    return folder


def written(project: Path) -> list[str]:
    return sorted(str(path.relative_to(project)) for path in (project / "defs").rglob("*"))


def refused(project: Path, recipe: Path | str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the message; nothing is written."""
    before = written(project)
    status = main(["--project", str(project), "import", str(recipe), "--name", "case", "--offline"])
    printed = capsys.readouterr()
    assert (status, printed.out) == (2, "")
    assert written(project) == before
    return printed.err


@pytest.mark.parametrize("name", RECIPES)
def test_refused(project: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    data, expected = RECIPES[name]
    recipe = project / "recipe" / "Dockerfile"
    recipe.write_bytes(data)
    assert f"sifwright: {recipe}{expected}" in refused(project, recipe, capsys)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.mkdir, "not a regular file"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("nowhere"), "cannot be read: No such file"),
        (lambda path: path.symlink_to(path), "cannot be read: Too many levels"),
    ],
    ids=["folder", "pipe", "link", "loop"],
)
def test_no_file(
    project: Path,
    tmp_path: Path,
    make: Callable[[Path], None],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make(tmp_path / "x")
    assert f"sifwright: {tmp_path / 'x'}: {message}" in refused(project, tmp_path / "x", capsys)


@pytest.mark.parametrize("name", ["../../x", "a/b", "a\nb", "-x", "A", "a--b", "x" * 9 + "\0"])
def test_names(project: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = project / "recipe" / "Dockerfile"
    recipe.write_text(BASE)
    before = written(project)
    status = main(["--project", str(project), "import", str(recipe), f"--name={name}", "--offline"])
    assert (status, "is no name of an image" in capsys.readouterr().err) == (2, True)
    assert written(project) == before


def test_existing_files_stay(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = project / "recipe" / "Dockerfile"
    recipe.write_text(f"{BASE}RUN true\n")
    taken = project / "defs" / "layers" / "case-1"
    taken.mkdir()
    assert f"sifwright: {taken}: is there already" in refused(project, recipe, capsys)
    taken.rmdir()


def test_a_failed_write_leaves_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = project / "recipe" / "Dockerfile"
    recipe.write_text(f"{BASE}RUN true\nRUN false\n")
    before, rename = written(project), Path.rename

    def full(source: Path, target: Path) -> Path:
        if target.name == "case-2":
            raise OSError(28, "No space left on device", str(target))
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", full)
    status = main(["--project", str(project), "import", str(recipe), "--name", "case", "--offline"])
    assert (status, "No space left" in capsys.readouterr().err) == (5, True)
    assert written(project) == before


def test_files_of_other_imports_are_not_read(project: Path) -> None:
    """Import among a hundred images as fast as the first one."""
    recipe = project / "recipe" / "Dockerfile"
    recipe.write_text(f"{BASE}RUN true\n")
    broken = project / "defs" / "layers" / "broken"
    broken.mkdir()
    (broken / "layer.yaml").write_text("summary: [\n")
    words = ["--project", str(project), "import", str(recipe), "--name", "beside"]
    assert main([*words, "--offline"]) == 0
    shutil.rmtree(broken)


def test_dry_run_writes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = project / "recipe" / "Dockerfile"
    recipe.write_text(
        f"{BASE}RUN echo $(touch {project}/defs/ran)\nLABEL a='%post' b=\"{{{{ x }}}}\"\n"
    )
    before = written(project)
    words = ["--project", str(project), "import", str(recipe), "--name", "case"]
    assert main([*words, "--offline", "--dry-run"]) == 0
    assert "case-1/  Dockerfile:2: RUN echo" in capsys.readouterr().out
    assert written(project) == before


def test_labels_and_scripts_of_any_kind_load(project: Path) -> None:
    """Take text that resembles a section, a build argument or YAML for data."""
    recipe = project / "recipe" / "Dockerfile"
    recipe.write_text(
        'FROM debian:12\nLABEL description="{{ x }} %post: [a" n="a: b"\n'
        "RUN echo '%post'; echo {{ x }}\nRUN printf SIFWRIGHT_EOF\n"
        'CMD ["%post", "{{ x }}", "\\n%setup\\n"]\n'
    )  # fmt: skip
    words = ["--project", str(project)]
    assert main([*words, "import", str(recipe), "--name", "odd", "--offline"]) == 0
    assert main([*words, "plan", "local", "odd"]) == 0
    assert main([*words, "render", "local", "odd", "--single-file"]) == 0


def test_a_name_that_apptainer_keeps_is_said(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = project / "recipe" / "Dockerfile"
    recipe.write_text(f"{BASE}ENV A=1 \\\n UID=5\n")
    words = ["--project", str(project), "import", str(recipe), "--name", "case"]
    assert main([*words, "--offline", "--dry-run"]) == 0
    assert f"note: {recipe}:2: ENV UID: only the recipe's RUNs see it" in capsys.readouterr().out
