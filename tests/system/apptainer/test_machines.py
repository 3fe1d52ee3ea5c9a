"""Builds on machines that are older, or set up in another way."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from sifwright.system import ids, map_ids, user_namespace
from sifwright.system.tempdirs import remove
from tests.conftest import run
from tests.system.apptainer.machines import OVERLAYS_OFF, old_unshare
from tests.system.apptainer.steps import inside
from tests.system.apptainer.test_tmp import assert_untouched, files, left_in, tidy
from tests.system.apptainer.toys import Toy, succeeded
from tests.system.apptainer.trees import unpack
from tests.system.apptainer.trials import states

__all__ = ["files"]

pytestmark = pytest.mark.build
STEPS = ("base-local", "hello")
HELLO = "echo hello >/hello; chown 33:34 /hello; chmod 600 /hello\n"


@pytest.fixture
def toy(tiny: Toy) -> Toy:
    tiny.layer("hello", HELLO)
    tiny.image("hello")
    return tiny


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = old_unshare(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.mark.usefixtures("old")
def test_an_old_unshare(
    toy: Toy, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run steps one by one, with the image's owners, and leave no file behind."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    for state in ("done", "cached"):
        done = succeeded(toy.build("--json", "--force"))
        assert {step: states(done)[step] for step in STEPS} == dict.fromkeys(STEPS, state)
        status = (unpack(engine, toy.sif, tmp_path / state) / "hello").stat()
        assert (status.st_uid, status.st_gid) == (33, 34)
    assert toy.leftovers() == []
    assert list(temporary.iterdir()) == []


@pytest.mark.usefixtures("old")
def test_owners_in_its_place(tmp_path: Path) -> None:
    """Map the same as unshare; a user can remove the files only in the namespace."""
    if not user_namespace.prefix():
        pytest.skip("a root with all capabilities needs no namespace")
    assert user_namespace.prefix()[0] == sys.executable
    folder = tmp_path / "folder"
    folder.mkdir()
    inside("touch file; chown 33:34 file; chown 33:34 .", folder)
    uids, gids, _ = ids.subordinate_ids() or pytest.fail("no subordinate ids")
    status = (folder / "file").stat()
    assert (status.st_uid, status.st_gid) == (uids + 32, gids + 33)
    unshare = ["/usr/bin/unshare", "--map-root-user", "--map-auto"]
    results = [
        run([*way, "stat", "-c", "%u %g", folder]).stdout
        for way in (unshare, user_namespace.prefix())
    ]
    assert results == ["33 34\n"] * 2
    remove(folder)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("expected", "says"),
    [((1, 1, 65536), "newuidmap: "), (None, "no subordinate ids")],
    ids=["not-ours", "none"],
)
@pytest.mark.usefixtures("old")
def test_ids_that_are_not_ours(
    monkeypatch: pytest.MonkeyPatch, expected: tuple[int, int, int] | None, says: str
) -> None:
    if not user_namespace.prefix():
        pytest.skip("a root with all capabilities needs no namespace")
    monkeypatch.setattr(ids, "subordinate_ids", lambda: expected)
    user_namespace._way.cache_clear()  # noqa: SLF001
    problem = user_namespace.problem()
    user_namespace._way.cache_clear()  # noqa: SLF001
    assert problem is not None
    assert f"no user namespace with subordinate ids: {says}" in problem.what


def test_exit_statuses() -> None:
    result = ids.subordinate_ids()
    if result is None:
        pytest.skip("there are no subordinate ids")
    way = [sys.executable, map_ids.__file__, *result]
    assert run([*way, "sh", "-c", "exit 3"]).returncode == 3
    done = run([*way, "/nonexistent"])
    assert (done.returncode, done.stderr) == (1, "/nonexistent: No such file or directory\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="changing apptainer.conf for a test needs root")
def test_overlays_switched_off(toy: Toy, engine: str, files: list[Path], tmp_path: Path) -> None:
    """Let the engine run all steps; files of a step at /tmp are there for the later ones."""
    if Path(engine).name != "apptainer":
        pytest.skip("the setting is Apptainer's")
    toy.layer("hello", HELLO + tidy(files, name="tidy"))
    words = [*OVERLAYS_OFF, tmp_path / "conf", sys.executable, "-m", "sifwright"]
    done = run([*words, *toy.command("--layout", "layered")])
    assert done.returncode == 5, done.stdout + done.stderr
    assert "no layered SIF can be made here: overlays are switched off" in done.stderr
    assert "--layout flat" in done.stderr
    assert not toy.sif.exists()
    done = run([*words, *toy.words("shell", "--before", "hello")])
    assert done.returncode == 5, done.stdout + done.stderr
    assert "no step can be entered here: overlays are switched off" in done.stderr
    assert "'sifwright build' needs none of it" in done.stderr
    done = succeeded(run([*words, *toy.command()]))
    assert "nothing is kept: overlays are switched off" in done.stdout
    assert_untouched(files)
    assert left_in(engine, toy, tmp_path / "tree") == []
    assert run([*OVERLAYS_OFF, tmp_path / "conf", engine, "exec", toy.sif, "stat", "/hello"]).stdout
