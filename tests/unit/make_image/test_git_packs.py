"""Repositories of a lock: one commit with its submodules, in a bundle and out of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import BuildError
from sifwright.make_image.downloads.fetch_file import open_store
from sifwright.make_image.lock import git_packs
from sifwright.make_image.lock_format.lock_file import LockedSource
from tests.servers import git, repository
from tests.unit.locks import LOCK

if TYPE_CHECKING:
    from pathlib import Path

CODE = "https://git.example/code"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LockedSource:
    """Make the second commit of a repository with a submodule beside it."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    part, code = tmp_path / "git" / "part", tmp_path / "git" / "code"
    repository(part, "part\n")
    repository(code)
    git(code, "submodule", "--quiet", "add", str(part), "below")
    modules = (code / ".gitmodules").read_text().replace(str(part), "../part")
    (code / ".gitmodules").write_text(modules)
    git(code, "commit", "--quiet", "-a", "-m", "second")
    mirrors = tmp_path / "mirrors.yaml"
    mirrors.write_text(json.dumps({"git": {"https://git.example": str(tmp_path / "git")}}))
    monkeypatch.setenv("SIFWRIGHT_MIRRORS", str(mirrors))
    commit = git(code, "rev-parse", "HEAD")
    return LockedSource(
        layer="tool", name="code", kind="git", address=CODE, ref="v1", digest=commit
    )


def test_a_commit_comes_out_with_its_submodules(source: LockedSource, tmp_path: Path) -> None:
    sources = tuple(git_packs.with_submodules(source, open_store()))
    assert [item.name for item in sources] == ["code", "code/below"]
    lock, folder = replace(LOCK, sources=sources), tmp_path / "files"
    folder.mkdir()
    git_packs.collect(lock, open_store(), folder, offline=True)
    for name, address in git_packs.restore(lock, folder).items():
        git(tmp_path, "config", "--file", "rules", f"url.{address}.insteadOf", name)
    # Fetch like fetch-source, and without the repositories themselves.
    (tmp_path / "git").rename(tmp_path / "gone")
    tree = tmp_path / "tree"
    tree.mkdir()
    rules = f"include.path={tmp_path / 'rules'}"
    git(tree, "init", "--quiet")
    git(tree, "remote", "add", "origin", CODE)
    git(tree, "-c", rules, "fetch", "--quiet", "--depth", "1", "origin", source.digest)
    git(tree, "checkout", "--quiet", "--detach", "FETCH_HEAD")
    git(tree, "-c", rules, "submodule", "--quiet", "update", "--init", "--depth", "1")
    assert (tree / "below" / "file").read_text() == "part\n"
    assert git(tree, "rev-list", "--count", "HEAD") == "1"


def test_a_pack_of_another_commit_is_refused(source: LockedSource, tmp_path: Path) -> None:
    (folder := tmp_path / "files").mkdir()
    lock = replace(LOCK, sources=(source,))
    git_packs.collect(lock, open_store(), folder, offline=False)
    pack = folder / "git" / f"{source.digest}.pack"
    other = replace(lock, sources=(replace(source, digest="6" * 40),))
    (folder / "git" / f"{'6' * 40}.pack").write_bytes(pack.read_bytes())
    with pytest.raises(BuildError, match=f"what is there is not commit {'6' * 40}"):
        git_packs.restore(other, folder)
    pack.write_bytes(pack.read_bytes()[:-30])
    with pytest.raises(BuildError, match="source code of layer 'tool'"):
        git_packs.restore(lock, folder)


def test_an_address_is_no_option_of_git(source: LockedSource, tmp_path: Path) -> None:
    """Fetch a submodule whose address would run a program."""
    address = f"--upload-pack=touch {tmp_path}/made;"
    lock = replace(LOCK, sources=(replace(source, address=address),))
    with pytest.raises(BuildError, match="it is not there as locked"):
        git_packs.collect(lock, open_store(), tmp_path, offline=False)
    assert not (tmp_path / "made").exists()


def test_a_commit_that_is_gone_is_refused(source: LockedSource, tmp_path: Path) -> None:
    lock = replace(LOCK, sources=(replace(source, digest="6" * 40),))
    with pytest.raises(BuildError, match="it is not there as locked"):
        git_packs.collect(lock, open_store(), tmp_path, offline=False)
    with pytest.raises(BuildError, match="not in the cache of downloads, and no network is used"):
        git_packs.collect(lock, open_store(), tmp_path, offline=True)
