"""Rules for every file that is, or is about to be, in the repository."""

import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pip._internal.models.index import PyPI

from .conftest import CHECKOUT, run

LOCAL_NAMES = {"localhost", "127.0.0.1", "::1"}
# Definitions may name hosts of these, and so may the settings of a machine.
DISTRIBUTIONS = (".debian.org", ".ubuntu.com")


@pytest.fixture(scope="module")
def contents() -> dict[str, bytes]:
    """Return tracked files and those that a `git add .` would track."""
    if not (CHECKOUT / ".git").exists():
        pytest.skip("not a git checkout")
    git = ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"]
    names = subprocess.run(git, cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout
    files = {name: CHECKOUT / name for name in names.split("\0") if name}
    return {name: file.read_bytes() for name, file in files.items() if file.is_file()}


def holding(contents: dict[str, bytes], pattern: str) -> list[str]:
    search = re.compile(pattern.encode(), re.IGNORECASE | re.MULTILINE).search
    return [name for name, content in contents.items() if search(content)]


def output(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def pip_sources() -> Iterator[str]:
    yield from (PyPI.url, f"https://{PyPI.file_storage_domain}")
    settings = output(sys.executable, "-m", "pip", "config", "list")
    for value in re.findall(r"(?m)^\S*(?:index-url|find-links)='(.*)'$", settings):
        yield from value.replace("\\n", " ").split()
    yield from os.environ.get("PIP_FIND_LINKS", "").split()


def registries() -> set[str]:
    """Return hosts, or folders, where this machine gets packages from."""
    apt = output("apt-get", "indextargets", "--format", "$(SITE)").split()
    return hosts(*apt, *pip_sources(), *output("npm", "config", "get", "registry").split())


def hosts(*sources: str) -> set[str]:
    urls = [urlsplit(source) for source in sources]
    names = {url.hostname or url.path for url in urls} - LOCAL_NAMES - {"", "/"}
    return {name for name in names if not name.endswith(DISTRIBUTIONS)}


@pytest.mark.all
def test_no_file_names_a_package_registry(contents: dict[str, bytes]) -> None:
    results = {name: holding(contents, rf"(?<![\w.-]){re.escape(name)}") for name in registries()}
    assert not {name: files for name, files in results.items() if files}


def test_no_file_holds_the_path_of_this_checkout(contents: dict[str, bytes]) -> None:
    assert not holding(contents, rf"{re.escape(str(CHECKOUT))}(?![\w.-])")


def test_pytest_collects_every_file_of_tests(
    contents: dict[str, bytes], pytestconfig: pytest.Config
) -> None:
    """Collect folders called build, dist and venv, which pytest leaves out by default."""
    skipped, collected = (pytestconfig.getini(key) for key in ("norecursedirs", "python_files"))
    tests = [Path(name) for name in holding(contents, r"^def test_") if name.startswith("tests/")]
    assert len(tests) > 100
    for path in tests:
        assert any(path.match(pattern) for pattern in collected), path
        assert not any(
            fnmatch(part, pattern) for part in path.parent.parts for pattern in skipped
        ), path


def test_programs_are_executable() -> None:
    for file in (*CHECKOUT.glob("tools/*"), *CHECKOUT.glob("runscripts/*"), CHECKOUT / ".ci/run"):
        if file.is_file() and file.suffix != ".sh":  # the others source these
            assert file.read_bytes().startswith(b"#!"), file
            assert file.stat().st_mode & stat.S_IXUSR, file


def test_lint_shell_finds_scripts_by_their_first_line(tmp_path: Path) -> None:
    """Run scripts and tools have no ending, and some are Python."""
    checked = tmp_path / "checked"
    recorder = tmp_path / "shellcheck"
    recorder.write_text(f'#!/bin/bash\nprintf "%s\\n" "$@" >{checked}\n')
    recorder.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert run("tools/lint-shell", env={"PATH": path}).returncode == 0
    programs = (
        *("tools/*", "runscripts/*", ".ci/run", "builder/sifwright/install/bin/*"),
        *("builder/sifwright/render/templates/bin/*", "builder/sifwright/render/templates/oci/*"),
        "builder/sifwright/make_image/resolve_request/templates/one_uid/*",
        "builder/sifwright/install/native/extend-venv-activate",
    )
    shell = {
        str(file.relative_to(CHECKOUT))
        for where in programs
        for file in CHECKOUT.glob(where)
        if file.is_file() and re.match(rb"#!.*\b(ba)?sh\b", file.read_bytes())
    }
    carried = (
        "runscripts/*.sh",
        "defs/layers/*/*.sh",
        "builder/sifwright/*/templates/*.sh",
        "builder/sifwright/install/share/*.sh",
    )
    by_ending = {
        str(file.relative_to(CHECKOUT)) for where in carried for file in CHECKOUT.glob(where)
    }
    assert set(checked.read_text().split()) == shell | by_ending
    assert "tools/lint-shell" in shell


@pytest.mark.all
def test_wheel_carries_definitions_and_executable_run_scripts(tmp_path: Path) -> None:
    built = run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, CHECKOUT)
    assert built.returncode == 0, built.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        modes = {info.filename: info.external_attr >> 16 for info in wheel.infolist()}
        entry_points = wheel.read(next(name for name in modes if name.endswith("entry_points.txt")))
    for folder in ("defs", "runscripts"):
        for file in (CHECKOUT / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                mode = modes[f"sifwright/_data/{file.relative_to(CHECKOUT)}"]
                assert bool(mode & stat.S_IXUSR) == os.access(file, os.X_OK), file
    assert b"sifwright = sifwright.__main__:main" in entry_points


def test_pip_configuration_is_read_for_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read a registry, or the check above would find nothing without a word."""
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://packages.invalid/simple")
    assert {"packages.invalid", PyPI.netloc} <= hosts(*pip_sources())


def test_json_of_files_is_read_in_one_way(contents: dict[str, bytes]) -> None:
    """Use `small_file`, which waits for no pipe, and has limits of size and depth."""
    result = holding(contents, r"json\.loads?\(.*\.read_(text|bytes)\(")
    assert [name for name in result if name.startswith("builder/")] == []
