"""The tree that steps ran in goes beside what follows, and is no part of the next one."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.errors import BuildError, MachineError
from sifwright.make_image.resolve_request.output_parser import OutputParser
from sifwright.make_image.run_steps import build_folder
from sifwright.make_image.run_steps.run_in_apptainer import Sandbox
from sifwright.system import os_errors, tempdirs
from sifwright.system.progress import QuietProgress, Timer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def aside() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.fixture
def sandbox(tmp_path: Path, aside: Executor) -> Sandbox:
    """Make a sandbox with a tree; a folder of the tree lets nobody remove its files."""
    unused: Any = None
    folder = tmp_path / "tree" / "usr"
    folder.mkdir(parents=True)
    (folder / "file").touch()
    folder.chmod(0o555)
    context: Any = SimpleNamespace(work_dir=tmp_path, log=tmp_path / "log")
    return Sandbox(context=context, engine=unused, downloads=None, background=aside)


def test_the_tree_is_removed_beside_what_follows(sandbox: Sandbox, aside: Executor) -> None:
    sandbox.remove_tree()
    aside.shutdown()
    assert not sandbox.is_removing
    assert not (sandbox.context.work_dir / "tree").exists()


def test_results_are_not_unpacked_to_what_is_left_of_a_tree(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Try a busy disk, a mount, an open file that a network file system keeps."""
    monkeypatch.setattr(tempdirs, "remove_tree", lambda _: None)
    sandbox.remove_tree()
    with pytest.raises(MachineError, match=r"tree.*cannot be removed"):
        sandbox.unpack([], 0)


def test_full_disks_are_examined_before_a_removal(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Look first: some inodes are free again afterwards."""
    lacking = ["no inodes are left"]
    monkeypatch.setattr(build_folder, "clear_step_tmp", lambda _: lacking.append(""))
    monkeypatch.setattr(os_errors, "exhausted", lambda _, was_full: was_full and lacking[-1])
    watcher = OutputParser(timer=Timer(QuietProgress()), fix="")
    context: Any = SimpleNamespace(
        work_dir=tmp_path, log=tmp_path / "log", environment=dict, watcher=watcher
    )
    engine: Any = SimpleNamespace(product="apptainer")
    failing = Sandbox(context=context, engine=engine, downloads=None, background=sandbox.background)
    with pytest.raises(BuildError, match=r"apptainer failed \(no inodes are left below"):
        failing._run(["bash", "-c", "echo No space left on device; exit 1"], tmp_path)  # noqa: SLF001
