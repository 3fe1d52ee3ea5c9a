"""Sources are fetched in real builds at their pins, through one mirrors file, and recorded."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run, sifwright
from tests.servers import archive, git, repository, send, serve, sha256
from tests.system.apptainer.steps import make_root
from tests.system.apptainer.toys import Toy, make_toy, succeeded
from tests.system.apptainer.trees import unpack

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path

GIT = "https://git.example/group/toy.git"
ARCHIVE = "https://files.example/pub/toy-{version}.tar.gz"
CANARY = "canary4711"
INSTALL = """fetch-source the-repository repository
fetch-source the-archive archive
cat repository/file archive/readme >/fetched
[[ $(mirrored https://wheels.example/whl/cpu) == file:///mnt/*/cpu ]]
"""
VERSION = {"type": "string", "description": "Version of the toy", "default": "1.0"}
# Programs that fetch-source calls, with git's own helpers.
PROGRAMS = ("git", "curl", "tar", "gzip", "sed", "awk", "mktemp", "dirname", "sha256sum")


@pytest.fixture(scope="module")
def tools_base(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a SIF of a few programs of this machine, with git and curl."""
    folder = tmp_path_factory.mktemp("tools")
    root = make_root(folder / "root", *PROGRAMS)
    (root / "usr/bin/git-upload-pack").symlink_to("git")
    succeeded(run([engine, "build", folder / "tools.sif", root]))
    return folder / "tools.sif"


@dataclass(kw_only=True)
class Site:
    """A toy with sources that only a mirrors file leads to. `served` is what the mirror gives."""

    toy: Toy
    folder: Path
    url: str
    commit: str
    served: bytes
    asked: list[str]

    def pins(self, **pins: dict[str, str]) -> None:
        """Write pins.yaml; by default both sources are pinned to what is there."""
        first = pins.get("repository", {"commit": self.commit})
        other = pins.get("archive", {"sha256": sha256(archive(readme="of the archive\n"))})
        document = {
            "the-repository": {"git": GIT, "tag": "v{version}", "versions": {"1.0": first}},
            "the-archive": {"archive": ARCHIVE, "versions": {"1.0": other}},
        }
        folder = self.toy.folder / "defs" / "layers" / "fetches" / "pins.yaml"
        folder.write_text(json.dumps(document))

    def build(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.toy.build(*arguments)

    def document(self, name: str) -> dict[str, object]:
        content: dict[str, object] = json.loads((self.toy.output / name).read_text())
        return content


@pytest.fixture
def site(tools_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    toy = make_toy(tmp_path / "project", tools_base)
    toy.layer("fetches", INSTALL, header={"options": {"version": VERSION}})
    toy.image("fetches")
    folder = tmp_path / "mirrors"
    commit = repository(folder / "git" / "group" / "toy.git")
    (folder / "wheels" / "cpu").mkdir(parents=True)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        result.asked.append(handler.path)
        known = handler.path == "/mirror/pub/toy-1.0.tar.gz"
        expected = base64.b64encode(f"user:{CANARY}".encode()).decode()
        allowed = handler.headers.get("Authorization") == f"Basic {expected}"
        send(handler, 200 if known and allowed else 404, result.served)

    with serve(answer) as url:
        result = Site(
            toy=toy,
            folder=folder,
            url=url,
            commit=commit,
            served=archive(readme="of the archive\n"),
            asked=[],
        )
        result.pins()
        rules = {
            "git": {"https://git.example/": "./git/"},
            "archives": {
                "https://files.example": url.replace("//", f"//user:{CANARY}@") + "/mirror"
            },
            "wheels": {"https://wheels.example/whl/": str(folder / "wheels")},
        }
        (folder / "mirrors.yaml").write_text(json.dumps(rules))
        monkeypatch.setenv("SIFWRIGHT_MIRRORS", str(folder / "mirrors.yaml"))
        yield result


def test_all_through_the_mirrors_file(site: Site, engine: str, tmp_path: Path) -> None:
    # A pin names the commit, and its tag has moved.
    repository(site.folder / "git" / "group" / "toy.git", "moved\n")
    assert git(site.folder / "git" / "group" / "toy.git", "rev-parse", "v1.0^{}") != site.commit
    built = succeeded(site.build("--verbose"))
    assert site.toy.execute(engine, "cat", "/fetched") == "one\nof the archive\n"
    digest = sha256(site.served)
    assert site.document("record.json")["sources"] == [
        {"layer": "fetches", "source": "the-repository", "ref": "v1.0", "digest": site.commit},
        {"layer": "fetches", "source": "the-archive", "ref": "1.0", "digest": digest},
    ]
    # Nothing of the mirrors is in the image, and their passwords are nowhere.
    tree = unpack(engine, site.toy.sif, tmp_path)
    assert not (tree / ".sifwright").exists()
    assert list((tree / "mnt").iterdir()) == []
    words = (CANARY, site.url, str(site.folder))
    assert [path for path in tree.rglob("*") if _holds(path, words)] == []
    for path in site.toy.output.iterdir():
        assert not _holds(path, (CANARY,)), path
    assert not _holds(site.toy.output / "recipe" / "toy.def", words)
    assert CANARY not in built.stdout + built.stderr


def _holds(path: Path, words: tuple[str, ...]) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    data = path.read_bytes()
    return any(word.encode() in data for word in words)


def test_by_hand_with_the_folder_that_sifwright_writes(
    site: Site, engine: str, tmp_path: Path
) -> None:
    """Take the definition file, the folder and the printed command, without sifwright."""
    project = ["--project", str(site.toy.folder)]
    recipe = tmp_path / "recipe"
    succeeded(sifwright(*project, "render", "local", "toy", "--output", recipe))
    done = succeeded(sifwright(*project, "host-settings", tmp_path / "settings"))
    assert CANARY not in done.stdout
    command = (
        done.stdout.splitlines()[0].removeprefix("build with it:  ").replace("apptainer", engine)
    )
    command = command.replace("image.sif", "toy.sif").replace("IMAGE.def", "toy.def")
    assert run(["bash", "-c", command], cwd=recipe).returncode == 0
    shown = run([engine, "--quiet", "exec", recipe / "toy.sif", "cat", "/fetched"]).stdout
    assert shown == "one\nof the archive\n"
    # Settings can hold passwords, and an existing folder is nobody's to fill.
    assert (tmp_path / "settings").stat().st_mode & 0o077 == 0
    assert sifwright(*project, "host-settings", tmp_path / "settings").returncode == 2


def test_unpinned_sources_are_held_to_their_first_use(site: Site) -> None:
    unchecked = {"unchecked": "the repository could not be reached"}
    site.pins(repository=unchecked, archive=unchecked)
    assert site.build("--quiet").returncode == 0
    assert site.document("pins.json") == {
        "fetches the-archive 1.0": sha256(site.served),
        "fetches the-repository v1.0": site.commit,
    }
    moved = repository(site.folder / "git" / "group" / "toy.git", "moved\n")
    assert site.build("--force").returncode == 0  # from the cache: nothing is fetched
    refused = site.build("--no-cache", "--force")
    assert refused.returncode == 6
    assert f"expected: {site.commit}, what it was when it was first used here" in refused.stderr
    assert f"found:    {moved}" in refused.stderr
    # Meant: the entry is taken out.
    record = site.document("pins.json")
    del record["fetches the-repository v1.0"]
    (site.toy.output / "pins.json").write_text(json.dumps(record))
    assert site.build("--quiet", "--no-cache", "--force").returncode == 0
    assert site.document("pins.json")["fetches the-repository v1.0"] == moved
    # The cached result comes from another commit than the recorded one.
    assert site.build("--quiet", "--force").returncode == 0
    assert site.document("pins.json")["fetches the-repository v1.0"] == moved


def test_a_locked_build_needs_no_mirror_any_more(
    site: Site, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Take digests from the lock, also of unpinned sources, and files from a cache."""
    site.toy.layer(
        "fetches",
        "".join(INSTALL.splitlines(keepends=True)[:3]),
        header={"options": {"version": VERSION}},
    )
    unchecked = {"unchecked": "a test"}
    site.pins(repository=unchecked, archive=unchecked)
    project, output = ["--project", site.toy.folder], ["--output", site.toy.folder / "build"]
    succeeded(sifwright(*project, "lock", "local", "toy", *output))
    succeeded(site.build("--locked"))
    (site.folder / "mirrors.yaml").rename(site.folder / "gone.yaml")
    monkeypatch.delenv("SIFWRIGHT_MIRRORS")
    succeeded(site.build("--locked", "--offline", "--force", "--no-cache"))
    assert site.toy.execute(engine, "cat", "/fetched") == "one\nof the archive\n"
