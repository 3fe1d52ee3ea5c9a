"""fetch-source and git: a commit by its name, from any kind of server, or nothing."""

import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.conftest import run
from tests.servers import git, repository, serve, serve_folder
from tests.unit.fetching import Step, refused, silence

pytestmark = pytest.mark.all

UPSTREAM = "https://upstream.example/group/toy.git"


def _rules(target: object) -> tuple[tuple[str, str], ...]:
    return (("https://upstream.example/group", str(target)),)


def test_git_by_commit_through_a_mirror(step: Step, tmp_path: Path) -> None:
    commit = repository(tmp_path / "git" / "toy.git")
    newer = repository(tmp_path / "git" / "toy.git", "two\n", "v2.0")
    done = step.fetch(
        f"git {UPSTREAM} v1.0 {commit} submodules=false", rules=_rules(tmp_path / "git")
    )
    assert done.returncode == 0, done.stderr
    assert step.text("file") == "one\n"
    tree = step.folder / "work" / "there"
    assert git(tree, "rev-parse", "HEAD") == commit != newer
    assert git(tree, "remote", "get-url", "origin") == UPSTREAM
    assert done.stdout == f"sifwright: pin toy the-toy v1.0 {commit}\n"


def test_git_from_a_plain_web_server(step: Step, tmp_path: Path) -> None:
    """Fetch all and take the pinned commit: the server cannot give single ones."""
    bare = tmp_path / "git" / "toy.git"
    commit = repository(tmp_path / "toy")
    repository(tmp_path / "toy", "two\n", "v2.0")
    git(tmp_path, "clone", "--quiet", "--mirror", str(tmp_path / "toy"), str(bare))
    git(bare, "update-server-info")
    with serve_folder(tmp_path / "git") as url:
        done = step.fetch(f"git {UPSTREAM} v1.0 {commit} submodules=false", rules=_rules(url))
        assert done.returncode == 0, done.stderr
    assert step.text("file") == "one\n"


def test_git_without_the_commit_says_what_the_tag_is(step: Step, tmp_path: Path) -> None:
    commit = repository(tmp_path / "git" / "toy.git")
    wrong = "1" * 40
    source = f"git {UPSTREAM} v1.0 {wrong} submodules=false"
    message = refused(step, step.fetch(source, rules=_rules(tmp_path / "git")))
    for word in (f"expected: {wrong}", f"found:    v1.0 is {commit}", UPSTREAM, "asked: "):
        assert word in message


def test_git_without_a_pin_takes_the_tag_and_holds_it(step: Step, tmp_path: Path) -> None:
    first = repository(tmp_path / "git" / "toy.git")
    source, rules = f"git {UPSTREAM} v1.0 - submodules=false", _rules(tmp_path / "git")
    done = step.fetch(source, rules=rules)
    assert done.stdout == f"sifwright: pin toy the-toy v1.0 {first}\n"
    run(["rm", "-r", step.folder / "work" / "there"])
    moved = repository(tmp_path / "git" / "toy.git", "moved\n")
    message = refused(step, step.fetch(source, rules=rules, record=f"toy the-toy v1.0 {first}\n"))
    assert f"expected: {first}, what it was when it was first used here" in message
    assert f"found:    {moved}" in message


def test_submodules_are_redirected_too(step: Step, tmp_path: Path) -> None:
    inner = tmp_path / "git" / "inner.git"
    repository(inner, "inner\n")
    outer = tmp_path / "git" / "toy.git"
    repository(outer)
    git(outer, "submodule", "--quiet", "add", "--name", "inner", str(inner), "inside")
    upstream = "https://upstream.example/group/inner.git"
    git(outer, "config", "--file", ".gitmodules", "submodule.inner.url", upstream)
    commit = repository(outer, "with a submodule\n", "v2.0")
    source = f"git {UPSTREAM} v2.0 {commit}"
    done = step.fetch(f"{source} submodules=true", rules=_rules(tmp_path / "git"))
    assert done.returncode == 0, done.stderr
    assert step.text("inside/file") == "inner\n"
    (tmp_path / "git" / "inner.git").rename(tmp_path / "gone")
    run(["rm", "-rf", step.folder / "work" / "there"])
    message = refused(step, step.fetch(f"{source} submodules=true", rules=_rules(tmp_path / "git")))
    assert "the submodules of source 'the-toy' cannot be fetched" in message


def test_a_damaged_repository_is_never_taken(step: Step, tmp_path: Path) -> None:
    """Change one byte, or cut the end, of every object of a plain web server's repository."""
    folder = tmp_path / "git" / "toy.git"
    commit = repository(folder)
    source = f"git {UPSTREAM} v1.0 {commit} submodules=false"
    tag = git(folder, "rev-parse", "v1.0")  # no part of the commit
    paths = (folder / ".git" / "objects").rglob("*")
    objects = [path for path in paths if len(path.name) == 38 and path.name != tag[2:]]
    assert len(objects) == 3
    with serve_folder(tmp_path / "git") as url:
        rules = (("https://upstream.example/group/toy.git", f"{url}/toy.git/.git"),)
        for path in objects:
            whole = path.read_bytes()
            path.chmod(0o644)
            for data in (whole[:10] + bytes([whole[10] ^ 1]) + whole[11:], whole[:-5]):
                path.write_bytes(data)
                refused(step, step.fetch(source, rules=rules))
            path.write_bytes(whole)
        assert step.fetch(source, rules=rules).returncode == 0


def test_silence_of_a_git_server_ends(step: Step) -> None:
    started = threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        started.set()
        silence(handler)

    with serve(answer) as url:
        source = f"git {url}/toy.git v1.0 {'1' * 40} submodules=false"
        message = refused(step, step.fetch(source, stall_seconds=1))
    assert started.is_set()
    assert "no answer" in message
