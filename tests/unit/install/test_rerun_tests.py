"""`sifwright test --prefix` runs the tests that an installation keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.system.native.project import Project
    from tests.unit.conftest import Cli

# It writes into the home directory and the folder of temporary files.
TEST = 'touch "$HOME/home" "$TMPDIR/file"; cat "$HAS_LAST/second"'


def state(folder: Path) -> dict[Path, int]:
    return {path: path.lstat().st_ctime_ns for path in (folder, *folder.rglob("*"))}


def test_a_prefix_is_tested_again(
    project: Project, run_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the tests of the installed version, not of changed definitions; write nothing there."""
    project.add("last", test=TEST)
    assert run_cli(*project.words()).code == 0
    project.add("last", test="false")
    before = state(project.prefix)
    monkeypatch.setenv("SIFWRIGHT_TESTS", "first")
    done = run_cli("test", "--prefix", project.prefix)
    assert (done.code, "test last" in done.out, state(project.prefix)) == (0, True, before)
    (project.prefix / "current/last/second").unlink()
    done = run_cli("test", "--prefix", project.prefix)
    assert done.code == 7, done.err
    assert "layer 'last', test.sh:3: cat \"$HAS_LAST/second\" (exit status 1)" in done.err
    assert f"sifwright report --all --prefix {project.prefix}" in done.err


def test_refused(project: Project, run_cli: Cli, tmp_path: Path) -> None:
    assert run_cli(*project.words()).code == 0
    for words in ((), ("local", "--prefix", project.prefix)):
        done = run_cli("test", *words)
        assert (done.code, "name a site or a prefix" in done.err) == (2, True)
    done = run_cli("test", "--prefix", tmp_path / "absent")
    assert (done.code, "is no folder of 'sifwright install'" in done.err) == (2, True)
    (project.prefix / "current").unlink()
    done = run_cli("test", "--prefix", project.prefix)
    assert (done.code, "no complete version is in use" in done.err) == (2, True)
    moved = project.prefix.rename(project.prefix.with_name("moved"))
    done = run_cli("test", "--prefix", moved)
    assert (done.code, f"it was installed as {project.prefix}" in done.err) == (2, True)
