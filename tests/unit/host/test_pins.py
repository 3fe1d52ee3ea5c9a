"""`sifwright pins`: listed, looked up, checked against what is there, written as a person would."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import git, repository, serve_folder, sha256
from tests.unit.conftest import Cli
from tests.unit.mirror_files import MirrorsFile
from tests.unit.upstream import ARCHIVES, GIT, ZERO, Upstream, served


@pytest.fixture
def upstream(project: Path, run_cli: Cli, mirrors_file: MirrorsFile) -> Iterator[Upstream]:
    with served(project, mirrors_file.folder, run_cli) as project_served:
        yield project_served


# ---- listed ---------------------------------------------------------------------------------


def test_the_list_shows_every_version_and_what_is_unchecked(upstream: Upstream) -> None:
    done = upstream.pins()
    assert done.code == 0, done.err
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["layer", "source", "version", "pin", "state", "from"]
    assert ["tool", "the-git", "1.0.0", upstream.commit[:12], "checked", GIT] in lines
    reason = "unchecked: not looked up: [red]it[/] could not be reached"
    assert ["tool", "the-git", "1.1.0", *reason.split(), GIT] in lines
    assert len(lines) == 5


def test_json_has_all_of_it(upstream: Upstream) -> None:
    assert upstream.entries("tool", "the-git", "1.0.0") == [
        {
            "layer": "tool",
            "source": "the-git",
            "version": "1.0.0",
            "url": GIT,
            "ref": "v1.0.0",
            "pin": upstream.commit,
            "state": "checked",
            "found": "",
            "reason": "",
        }
    ]
    assert len(upstream.entries("tool", "the-archive")) == 2


# ---- checked --------------------------------------------------------------------------------


def test_all_pins_are_compared_with_what_is_there(upstream: Upstream) -> None:
    repository(upstream.folder, "later\n", tag="v1.1.0")
    upstream.path.write_text(upstream.text.replace("'1.1.0'", "'1.2.0'"))
    done = upstream.pins("--check")
    assert done.code == 3
    states = {
        tuple(line.split()[1:3]): " ".join(line.split()[3:]) for line in done.out.splitlines()
    }
    assert " good " in states["the-git", "1.0.0"]
    assert states["the-git", "1.1.0"].startswith("can be pinned: ")
    assert " good " in states["the-archive", "1.0.0"]
    assert "changed: " in states["the-archive", "1.2.0"]
    for word in ("the archive is another one now", ZERO, sha256(ARCHIVES["/toy-1.2.0.tar.gz"])):
        assert word in done.err
    assert upstream.path.read_text() == upstream.text.replace("'1.1.0'", "'1.2.0'")


def _on_a_branch(upstream: Upstream) -> None:
    upstream.path.write_text(upstream.text.replace("tag: v{version}", "branch: main"))
    git(upstream.folder, "tag", "--delete", "v1.0.0")


def test_a_branch_moves_on_and_its_pin_stays_good(upstream: Upstream) -> None:
    _on_a_branch(upstream)
    repository(upstream.folder, "later\n", tag="v2.0.0")
    done = upstream.pins("tool", "the-git", "1.0.0", "--check")
    assert (done.code, done.err) == (0, "")
    assert " good " in done.out
    assert upstream.pins("tool", "the-git", "1.0.0", "--add").code == 0


def test_a_branch_that_loses_the_commit_is_reported(upstream: Upstream) -> None:
    _on_a_branch(upstream)
    git(upstream.folder, "commit", "--quiet", "--amend", "--message", "other")
    git(upstream.folder, "reflog", "expire", "--expire=now", "--all")
    git(upstream.folder, "gc", "--quiet", "--prune=now")
    for option in ("--check", "--add"):
        done = upstream.pins("tool", "the-git", "1.0.0", option)
        assert done.code == 3
        message = "tool the-git 1.0.0: the commit is no longer in the repository\n"
        assert f"{message}    from:   {GIT}\n    pinned: {upstream.commit}\n" in done.err


def test_a_plain_web_server_of_a_branch(upstream: Upstream, mirrors_file: MirrorsFile) -> None:
    """Fetch the whole history for a commit that is no branch's tip: the server has no single
    commits.
    """
    _on_a_branch(upstream)
    repository(upstream.folder, "later\n", tag="v2.0.0")
    with serve_folder(upstream.folder / ".git") as url:
        mirrors_file.write(json.dumps({"git": {GIT: url}}))
        assert upstream.entries("tool", "the-git", "1.0.0", "--check")[0]["state"] == "good"
        upstream.path.write_text(upstream.path.read_text().replace(upstream.commit, "0" * 40))
        assert upstream.pins("tool", "the-git", "1.0.0", "--check").code == 3
    assert upstream.pins("tool", "the-git", "1.0.0", "--check").code == 5


def test_a_branch_gives_the_pin_of_a_new_version(upstream: Upstream) -> None:
    _on_a_branch(upstream)
    commit = repository(upstream.folder, "later\n", tag="v2.0.0")
    assert upstream.pins("tool", "the-git", "2026-01-01", "--add").code == 0
    assert upstream.written()["the-git"]["versions"]["2026-01-01"] == {"commit": commit}


@pytest.mark.parametrize("more", ["  branch: main\n", "  pip: toy\n", "  archive: https://a.b/c\n"])
def test_one_place_each(upstream: Upstream, more: str) -> None:
    upstream.path.write_text(upstream.text.replace("  submodules: true\n", more))
    done = upstream.pins()
    assert done.code == 3
    assert "pins.yaml:4" in done.err
    assert "exactly one of these is needed: " in done.err


def test_silent_servers_are_named(upstream: Upstream) -> None:
    done = upstream.pins("tool", "the-archive", "1.1.0", "--check")
    assert done.code == 5
    assert "tool the-archive 1.1.0: cannot be looked up" in done.err
    assert "404" in done.err


# ---- added ----------------------------------------------------------------------------------


def test_a_version_is_looked_up_and_added_to_the_end(upstream: Upstream) -> None:
    upstream.path.chmod(0o640)
    done = upstream.pins("tool", "the-archive", "1.2.0", "--add")
    assert done.code == 0, done.err
    digest = sha256(ARCHIVES["/toy-1.2.0.tar.gz"])
    assert upstream.path.read_text() == f'{upstream.text}    "1.2.0": {{sha256: "{digest}"}}\n'
    assert upstream.path.stat().st_mode & 0o777 == 0o640
    assert upstream.entries("tool", "the-archive", "1.2.0")[0]["state"] == "checked"


def test_in_the_middle_of_the_file_too(upstream: Upstream) -> None:
    commit = repository(upstream.folder, "later\n", tag="v1.2.0")
    assert upstream.pins("tool", "the-git", "1.2.0", "--add").code == 0
    before = upstream.text.splitlines()
    index = next(n for n, line in enumerate(before) if "soon" in line) + 1
    after = [*before[:index], f'    "1.2.0": {{commit: "{commit}"}}', *before[index:]]
    assert upstream.path.read_text().splitlines() == after


def test_an_unchecked_version_gets_its_pin_and_keeps_its_comment(upstream: Upstream) -> None:
    commit = repository(upstream.folder, "later\n", tag="v1.1.0")
    assert upstream.pins("tool", "the-git", "1.1.0", "--add").code == 0
    old = '{unchecked: "not looked up: [red]it[/] could not be reached"}'
    expected = upstream.text.replace(old, f'{{commit: "{commit}"}}')
    assert upstream.path.read_text() == expected


def test_a_pin_that_somebody_saw_is_never_replaced(upstream: Upstream) -> None:
    moved = repository(upstream.folder, "moved\n", tag="v1.0.0")
    done = upstream.pins("tool", "the-git", "1.0.0", "--add")
    assert done.code == 3
    assert "tool the-git 1.0.0: the tag v1.0.0 has moved" in done.err
    assert f"pinned: {upstream.commit}\n    found:  {moved}\n" in done.err
    assert upstream.path.read_text() == upstream.text


def test_a_light_tag_is_its_commit(upstream: Upstream) -> None:
    git(upstream.folder, "tag", "v1.3.0", "v1.0.0^{}")
    assert upstream.pins("tool", "the-git", "1.3.0", "--add").code == 0
    assert upstream.written()["the-git"]["versions"]["1.3.0"] == {"commit": upstream.commit}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("tool", "the-git", "9.9.9"), 5, f"cannot be looked up: {GIT} has no tag v9.9.9"),
        (("tool", "the-archive", "9.9.9"), 5, "404"),
        (("tool", "1.2.0"), 2, "layer 'tool' has several sources"),
        (("tool",), 2, "--add needs a layer and a version"),
        (("tol", "1.2.0"), 2, "there is no layer with sources 'tol'\n    Did you mean 'tool'?"),
        (
            ("tool", "the-gti", "1.2.0"),
            2,
            "there is no source 'the-gti'\n    Did you mean 'the-git'?",
        ),
        (("tool", "the-git", "1.0.0", "--check"), 2, "do not go together"),
    ],
)
def test_nothing_is_written_where_it_cannot_be(
    upstream: Upstream, words: tuple[str, ...], code: int, message: str
) -> None:
    done = upstream.pins(*words, "--add")
    assert done.code == code
    assert message in done.err
    assert upstream.path.read_text() == upstream.text


@pytest.mark.parametrize(
    "versions",
    [
        'versions: {"1.0.0": {sha256: "SHA"}}',
        'versions:\n    "1.0.0":\n      sha256: "SHA"',
        'versions:\n    "1.0.0": {sha256:\n      "SHA"}',
        'versions: {\n    "1.0.0": {sha256: "SHA"}\n  }',
    ],
)
def test_a_file_that_one_line_cannot_mend_is_left_alone(upstream: Upstream, versions: str) -> None:
    head = "the-archive:\n  archive: https://files.example/toy-{version}.tar.gz\n  "
    text = f"{head}{versions.replace('SHA', ZERO)}\n"
    upstream.path.write_text(text)
    done = upstream.pins("tool", "the-archive", "1.2.0", "--add")
    digest = sha256(ARCHIVES["/toy-1.2.0.tar.gz"])
    assert done.code == 3
    assert "pins.yaml: 'versions' of 'the-archive' is not written with one version" in done.err
    assert f'Write it by hand: "1.2.0": {{sha256: "{digest}"}}' in done.err
    assert upstream.path.read_text() == text


def test_an_unknown_version_is_named(upstream: Upstream) -> None:
    done = upstream.pins("tool", "the-git", "2.0.0")
    assert done.code == 2
    assert "source 'the-git' has no version '2.0.0'" in done.err
