"""Requirements files: what they say, and everything that is refused, with file and line."""

import os
from pathlib import Path

import pytest

from sifwright.errors import UsageError
from sifwright.extend.read_requirements import Requirements, parse_requirements, read_requirements

SHA256 = "sha256:" + "0123456789abcdef" * 4
COMMIT = "0123456789" * 4


def _read(folder: Path, text: str | bytes) -> Requirements:
    file = folder / "r.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_requirements(file)


def _refusal(folder: Path, text: str | bytes) -> list[str]:
    with pytest.raises(UsageError) as caught:
        _read(folder, text)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def test_a_file_without_end_is_not_read_whole(tmp_path: Path) -> None:
    (message,) = _refusal(tmp_path, b"#" * (1 << 20) + b"\n")
    assert message.startswith("r.txt: cannot be read: larger than 1 MiB")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    (message,) = _refusal(tmp_path, "-r p\n")
    assert message.startswith("r.txt:1: p: cannot be read: not a regular file")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("text", ["a {}b", "a {}--hash", "a{}#", "{}#"])
def test_blanks_take_no_more_than_their_length(tmp_path: Path, text: str) -> None:
    """Take linear time: two steps for each pair of blanks would take hours."""
    assert len(_refusal(tmp_path, text.format(" " * 1_000_000) + "\n-r none\n")) <= 2


def test_of_mistakes_without_end_the_first_are_said(tmp_path: Path) -> None:
    assert len(_refusal(tmp_path, "-e .\n" * 1000)) == 50
    (message,) = _refusal(tmp_path, f"{'-' * 70_000}\n")
    assert message.startswith("r.txt:1: longer than 64 KiB")


@pytest.mark.parametrize("name", ["{}", "link"])
def test_a_file_elsewhere_is_not_quoted(tmp_path: Path, name: str) -> None:
    """Quote no file that an include names: only the reader may see it."""
    (tmp_path / "own").mkdir()
    (secret := tmp_path / "shadow").write_text("root:$y$secret:1::\n")
    (tmp_path / "own" / "link").symlink_to(secret)
    (message,) = _refusal(tmp_path / "own", f"-r {name.format(secret)}\n")
    assert "secret" not in message
    assert ":1: this line cannot be carried into the image" in message


def test_requirements_without_comments_and_options(tmp_path: Path) -> None:
    text = (
        "\ufeff# first\neinops == 0.8.1   # why\n\nrich[jupyter]>=13 ;python_version>'3.8'\n"
        "toy==1 \\\n  # a comment ends it\n--no-binary x,y\n--only-binary=:all: --require-hashes\n"
    )
    result = _read(tmp_path, text)
    assert result.text == (
        "--no-binary=x,y\n--only-binary=:all:\neinops==0.8.1\n"
        'rich[jupyter]>=13; python_version > "3.8"\ntoy==1\n'
    )
    assert [requirement.where for requirement in result.wanted] == [
        f"{tmp_path}/r.txt:{n}" for n in (2, 4, 5)
    ]
    assert parse_requirements(result.text, "").text == result.text


def test_hashes(tmp_path: Path) -> None:
    text = f"toy==1.0 \\\n    --hash={SHA256} \\\n    --hash {SHA256}\n"
    assert _read(tmp_path, text).text == f"toy==1.0 --hash={SHA256} --hash={SHA256}\n"
    result = _read(tmp_path, text)
    assert parse_requirements(result.text, "").wanted[0].hashes == (SHA256, SHA256)


def test_addresses_that_cannot_move(tmp_path: Path) -> None:
    lines = [
        f"a @ https://x.example/a-1-py3-none-any.whl#{SHA256.replace(':', '=')}",
        f"b @ git+https://x.example/b@{COMMIT}",
        f"c @ https://x.example/c.tar.gz --hash={SHA256}",
    ]
    assert _read(tmp_path, "\n".join(lines)).text.splitlines() == lines


def test_other_files_are_followed_from_where_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.txt").write_text("a==1\n-r b.txt\n-c c.txt\n")
    (tmp_path / "more" / "b.txt").write_text("b==2\n")
    (tmp_path / "more" / "c.txt").write_text("c<3\n-r d.txt\n")
    (tmp_path / "more" / "d.txt").write_text("d<4\n")
    result = _read(tmp_path, "-rmore/a.txt\ne\n--requirement=more/b.txt\n--constraint more/d.txt\n")
    assert result.text == "a==1\nb==2\ne\nb==2\n"
    assert result.constraints_text == "c<3\nd<4\nd<4\n"


@pytest.mark.parametrize(
    ("line", "text", "fix"),
    [
        ("einops=0.8", "'einops=0.8' is no requirement: Expected", "Write NAME"),
        ("a b", "'a b' is no requirement", "Write NAME"),
        ("-e .", "-e installs a folder of this machine", "pip wheel ."),
        ("--editable=./x", "--editable installs a folder", "pip wheel ."),
        ("./x-1-py3-none-any.whl", "is a path of this machine", "PIP_FIND_LINKS"),
        ("x-1.tar.gz", "is a path of this machine", "PIP_FIND_LINKS"),
        ("x @ file:///x.whl", "is a path of this machine", "PIP_FIND_LINKS"),
        ("git+https://x.example/a", "does not say which package that is", "NAME @ ADDRESS"),
        ("--index-url https://x.example", "--index-url: where packages come from", "pip.conf"),
        ("-fhttps://x.example", "-f: where packages come from", "mirrors"),
        ("--extra-index-url=x", "--extra-index-url: where", "PIP_EXTRA_INDEX_URL"),
        ("--trusted-host x", "--trusted-host is this machine's setting", "pip.conf"),
        ("--pre", "--pre takes the newest version", "NAME==2.0rc1"),
        ("--use-feature x", "--use-feature is an option that a layer has no use for", "Leave"),
        ("a --global-option=x", "--global-option of a requirement is not carried", "Leave it out"),
        ("a --hash=md5:12", "'md5:12' is no hash", "pip hash FILE"),
        ("a --hash", "'' is no hash", "pip hash FILE"),
        ("a @ https://me:secret@x.example/a.whl", "the address of a holds a login", "netrc"),
        ("a @ https://x.example/a.whl", "address of a leads to may change", "#sha256="),
        ("a @ git+https://x.example/a@main", "address of a leads to may change", "40 digits"),
        (f"a @ git+https://x.example/a@main#@{COMMIT}", "leads to may change", "40 digits"),
        (f"a @ git+https://x.example/a@main?x@{COMMIT}", "leads to may change", "40 digits"),
        ("a @ https://x.example/a.whl#sha256=", "leads to may change", "#sha256="),
        (f"a @ https://x.example/a.whl#md5=1&{SHA256.replace(':', '=')}", "may change", "#sha256="),
        (f"a @ https://x.example/a.whl#sha256= --hash={SHA256}", "may change", "#sha256="),
        ("a @ https://me:secret@[x/a.whl", "'https://[x/a.whl' is no address", "Name one"),
        ("a @ git+ssh://git@x.example/a", "a comes by git+ssh", "git+https://"),
        ("a==${VERSION}", "${VERSION} would be replaced by this machine's", "Write the value"),
        ("a=={{ x }}", "holds a brace", "Leave it out"),
        ("a==1\x1b", "holds a character that cannot be printed", "plain text"),
        ("-r", "no file is named", "-r FILE"),
        ("-c https://x.example/c.txt", "may say something else tomorrow", "Download it"),
        ("-r none.txt", "none.txt: cannot be read: No such file", "requirements file"),
        ("-r r.txt", "r.txt includes itself", "Leave that line out"),
        ("--no-binary 'x", "No closing quotation", "Mend the quotes"),
    ],
)
def test_refused(tmp_path: Path, line: str, text: str, fix: str) -> None:
    (message,) = _refusal(tmp_path, f"good==1\n\n{line}\n")
    first, _, second = message.partition("\n    ")
    assert first.startswith("r.txt:3: ")
    assert text in first
    assert fix in second


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "r.txt: it asks for no package"),
        ("# nothing\n\n", "r.txt: it asks for no package"),
        (b"a==1 # \xff\n", "r.txt: not UTF-8 text (byte 7)"),
    ],
)
def test_a_file_that_says_nothing(tmp_path: Path, text: str | bytes, expected: str) -> None:
    (message,) = _refusal(tmp_path, text)
    assert message.startswith(expected)


def test_everything_is_said_at_once(tmp_path: Path) -> None:
    lines = _refusal(tmp_path, "a=1\ngood==1\n-e .\n")
    assert [line.partition(" ")[0] for line in lines] == ["r.txt:1:", "r.txt:3:"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none.txt: cannot be read: No such file"):
        read_requirements(tmp_path / "none.txt")
