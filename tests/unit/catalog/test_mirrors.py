"""The mirrors file: what it may hold, where it leads, and what of it reaches which program."""

import os
import re
from importlib import resources
from pathlib import Path

import pytest

from sifwright.catalog import mirrors
from sifwright.errors import CatalogError
from sifwright.make_image.resolve_request import host_settings
from tests.conftest import run
from tests.unit.conftest import program
from tests.unit.mirror_files import ALL, MirrorsFile, empty

PROGRAMS = resources.files("sifwright") / "render" / "templates" / "bin"


def _refuse(path: Path) -> str:
    with pytest.raises(CatalogError) as caught:
        mirrors.load()
    return str(caught.value).replace(str(path.parent), "HERE")


def test_without_a_file_nothing_is_redirected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(mirrors.VARIABLE, raising=False)
    assert mirrors.load() == mirrors.Mirrors()


MISTAKES = {
    "gti: {}\n": "HERE/mirrors.yaml:1: unknown key 'gti'\n    Did you mean 'git'? Known: git,",
    "": "HERE/mirrors.yaml:1: a mapping is needed, not nothing",
    "pip: {index: x}\n": "HERE/mirrors.yaml:1: unknown key 'pip.index'\n    Did you mean '",
    "archives:\n  github.com: /tmp\n": (
        "mirrors.yaml:2: archives.github.com: 'github.com' does not fit\n"
        "    For example: https://github.com/"
    ),
    "archives:\n  https://a.example: b.example\n": (
        "mirrors.yaml:2: archives.https://a.example: 'b.example' does not fit\n"
        "    For example: https://mirror.example/github/"
    ),
    "apt:\n  http://a.example: http://u:p@b.example\n": "mirrors.yaml:2: apt.http://a.example:",
    "apt:\n  http://a.example: http://b.example/x?token=y\n": "mirrors.yaml:2: apt.http://a.exa",
    "oci:\n  docker.io: mirror/hub\n": "mirrors.yaml:2: oci.docker.io: 'mirror/hub' does not fit",
    "oci:\n  docker.io: /srv/images\n": "'/srv/images' does not fit",
    "git:\n  https://a.example: /x y\n": "'/x y' does not fit",
    "git:\n  https://a.example: './x\"; touch /pwned'\n": "does not fit",
    "git:\n  https://a.example: ./nowhere\n": (
        "mirrors.yaml:2: there is no folder HERE/nowhere\n    Make it, or mend the path."
    ),
    "git:\n  https://a.example: ./b:c\n": "mirrors.yaml:2: HERE/b:c: its name holds ':'",
    "wheels:\n  https://a.example/: https://b.example\n"
    "conda:\n  https://a.example: https://c.example\n": (
        "mirrors.yaml:4: https://a.example leads elsewhere under 'wheels'\n    Let both lead to the"
    ),
    "git: {}\n": "mirrors.yaml:1: git: empty",
    # A password is shown nowhere.
    "git:\n  https://a.example: https://u:p'q@b.example\n": 'e: "https://b.example" does not fit',
    "git:\n  https://a.example: https://u:p[q@b.example\n": (
        "mirrors.yaml:2: where https://a.example leads is no address\n    Write %5B for ["
    ),
    'git:\n  https://a.example: "https://b.example/c\\n"\n': "mirrors.yaml:2: git.https://a.exampl",
    "apt:\n  debian: https://b.example/{{y}}\n": "holds {{ }}, which Apptainer replaces",
    "git: [a]\n": "mirrors.yaml:1: git: a mapping is needed",
    "git: {a: &b c}\n": "anchors and aliases are not used here",
    "git:\n  https://a.example: 3\n": "3 is read as the number 3",
    "pip: {timeout: soon}\n": "an integer is needed",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_named_with_its_line(text: str, mirrors_file: MirrorsFile) -> None:
    path = mirrors_file.write(text)
    (path.parent / "b:c").mkdir()
    assert MISTAKES[text] in _refuse(path)


def test_all_mistakes_at_once(mirrors_file: MirrorsFile) -> None:
    message = _refuse(mirrors_file.write("gti: {}\noci: {docker.io: x}\n"))
    assert "mirrors.yaml:1" in message
    assert "mirrors.yaml:2" in message
    message = _refuse(
        mirrors_file.write("git:\n  https://a.example: ./a\n  https://b.example: ./b\n")
    )
    assert "HERE/a" in message
    assert "HERE/b" in message


def test_no_file(mirrors_file: MirrorsFile) -> None:
    path = mirrors_file.write("")
    path.unlink()
    message = _refuse(path)
    assert "HERE/mirrors.yaml: the mirrors file cannot be read: No such file" in message
    assert "SIFWRIGHT_MIRRORS" in message
    os.mkfifo(path)
    assert "cannot be read: not a regular file" in _refuse(path)


ADDRESSES = {
    "https://github.com/x/y.tar.gz": "https://files.site.example/github/x/y.tar.gz",
    "https://github.com": "https://files.site.example/github",
    "https://github.company.com/x": "https://github.company.com/x",
    "https://download.pytorch.org/whl/cpu": "file://HERE/wheels/cpu",
    "https://download.pytorch.org/whl": "file://HERE/wheels",
    "https://download.pytorch.org/whl2": "https://download.pytorch.org/whl2",
    "https://download.pytorch.org/": "https://download.pytorch.org/",
    "http://archive.ubuntu.com/ubuntu/": "file://HERE/ubuntu/",
    "http://archive.ubuntu.com/ubuntu-ports/": "http://archive.ubuntu.com/ubuntu-ports/",
    "https://conda.anaconda.org/conda-forge": "https://conda.site.example/conda-forge",
    "https://conda.anaconda.org:443/x": "https://conda.site.example:443/x",
    "nothing": "nothing",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_redirection(address: str, mirrors_file: MirrorsFile) -> None:
    """Compare Python's rules with those of the program `mirrored`."""
    path = mirrors_file.write(ALL)
    expected = ADDRESSES[address].replace("HERE", str(path.parent))
    assert mirrors.load().redirect(address, *mirrors.DOWNLOADS) == expected
    assert _mirrored(path.parent, address) == expected


def _mirrored(folder: Path, address: str) -> str:
    """Return the program's answer in a build with these rules."""
    machine_folder = folder / "build" / "machine"
    machine_folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{rule.source} {rule.target}\n" for rule in mirrors.load().of(*mirrors.DOWNLOADS)]
    (machine_folder / "mirrors").write_text("".join(lines))
    env = {"PATH": "/usr/bin:/bin", "SIFWRIGHT_BUILD": str(folder / "build")}
    done = run([PROGRAMS / "mirrored", address], env=env)
    assert done.stderr == ""
    return done.stdout.removesuffix("\n")


def test_the_longest_rule_decides(mirrors_file: MirrorsFile) -> None:
    mirrors_file.write(
        "archives:\n"
        "  https://a.example/b/c: https://three.example\n"
        "  https://a.example: https://one.example\n"
        "  https://a.example/b: https://two.example\n"
    )
    result = mirrors.load()
    for path, host in (
        ("b/c/d", "three.example/d"),
        ("b/x", "two.example/x"),
        ("x", "one.example/x"),
    ):
        address = f"https://a.example/{path}"
        assert result.redirect(address, "archives") == f"https://{host}"
        assert _mirrored(mirrors_file.folder, address) == f"https://{host}"
    assert result.redirect("https://a.example/x", "wheels") == "https://a.example/x"


REPOSITORIES = {
    "https://github.com/a/b.git": "https://git.site.example/github/a/b.git",
    "https://github.com/a/b": "https://git.site.example/github/a/b",
    "git@github.com:a/b.git": "https://git.site.example/github/a/b.git",
    "https://github.com/ofiwg/libfabric.git": "file://HERE/git/libfabric.git",
    "https://github.company.com/a/b.git": "https://github.company.com/a/b.git",
}


@pytest.mark.parametrize("url", REPOSITORIES)
def test_git_itself_follows_the_rules(url: str, mirrors_file: MirrorsFile, tmp_path: Path) -> None:
    path = mirrors_file.write(ALL)
    host_settings.prepare(empty(tmp_path))
    config = (tmp_path / "out" / "machine" / "gitconfig").read_text()
    # Replace the bind of the build by the path on this machine.
    bound = re.sub(r"file:///mnt/\d+", f"file://{path.parent}/git/libfabric.git", config)
    (tmp_path / "gitconfig").write_text(bound)
    env = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig")}
    done = run([program("git"), "ls-remote", "--get-url", url], env=env)
    assert done.stdout.strip() == REPOSITORIES[url].replace("HERE", str(path.parent))
