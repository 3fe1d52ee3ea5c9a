"""The engine of an installation: it runs steps and tests on this host, in a prefix."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sifwright.catalog.model import LayerFile
from sifwright.errors import BuildError
from sifwright.install.native import environment_hooks, host_script, tree_snapshot
from sifwright.make_image.pack_layers.pack_files import write_files
from sifwright.make_image.resolve_request import host_settings
from sifwright.make_image.resolve_request.output_parser import OutputParser
from sifwright.make_image.run_steps import build_folder
from sifwright.plan.model import Plan
from sifwright.render import build_files
from sifwright.system import files, processes
from sifwright.system.tempdirs import TEMPORARY_FIX, name_folder_in_errors, remove

# Variables of the user that would lead Python, pip, conda, git or caches elsewhere, or change what
# is compiled. Modules of the user's shell set others, such as CPATH: these stay.
_OTHERS = (
    *("PYTHON", "PIP_", "UV_", "VIRTUAL_ENV", "CONDA", "MAMBA_", "WITH_CONDA"),
    *("BASH_ENV", "OPT_", "SIFWRIGHT_TESTS", "XDG_"),
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX", "GIT_OBJECT", "GIT_COMMON"),
    *("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "NVCC_", "MAKEFLAGS", "MFLAGS"),
    *("CMAKE_ARGS", "CMAKE_BUILD_TYPE", "USE_", "BUILD_", "TORCH_", "PYTORCH_", "HOROVOD_"),
)
# The folder of an image for its kept files (build_files.py); an installation stands for it.
_KEPT = "/opt"
TEST_FAILED = "the test failed in the installation"


def environment() -> dict[str, str]:
    """Return the user's variables without those that lead steps elsewhere."""
    return {name: os.environ[name] for name in os.environ if not name.startswith(_OTHERS)}


@dataclass(kw_only=True, slots=True)
class HostSteps:
    """A `StepEngine` that installs in `folder`; `snapshot` is the file of the finished steps.

    `scratch` is a folder for what a step or a test writes meanwhile.
    """

    plan: Plan
    folder: Path
    snapshot: Path
    scratch: Path
    log: Path
    watcher: OutputParser
    _finished: list[str] = field(default_factory=list, init=False)

    def run(self, number: int, below: Sequence[str]) -> str:
        """Run a step unless it is finished, and return its id; raises `BuildError` if it fails."""
        if not below:
            self._finished = tree_snapshot.resume(self.folder, self.snapshot)
            self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        step = self.plan.steps[number]
        if step.id in self._finished[number : number + 1]:
            self.watcher.progress.note(f"{step.layer.name}: installed before")
            return step.id
        self._run(number)
        environment_hooks.call_hooks(self.plan)
        tree_snapshot.write_snapshot(self.folder, self.snapshot, [*below, step.id])
        return step.id

    def finish(self, _results: Sequence[str]) -> Path:
        """Write the plan and the tests into the folder."""
        for name, file in kept_files(self.plan, self.folder).items():
            self.write(self.folder / name, file.data, mode=0o755 if file.executable else 0o644)
        return self.folder

    def write_activation(self) -> None:
        """Write the activation scripts. They may be in use: each is replaced in one step."""
        scripts = {
            self.folder / "bin/activate": host_script.activation(self.plan, self.folder),
            **environment_hooks.hook_files(self.plan, self.folder),
        }
        for path, text in scripts.items():
            self.write(path, text.encode())

    def write(self, path: Path, data: bytes, mode: int = 0o644) -> None:
        """Put a file in place of another one; what a kill leaves is beside the snapshot."""
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        files.write(path, data, mode=mode, beside=self.snapshot.parent)

    def test(self, _product: Path, layers: Sequence[str] | None) -> int:
        """Run the tests of these layers, or of all, until one fails; return the exit status.

        They run from `scratch`: a version in use keeps its own until these pass.
        """
        with _make_scratch(self.scratch):
            kept = kept_files(self.plan, self.folder)
            with name_folder_in_errors(self.scratch, TEMPORARY_FIX):
                write_files(self.scratch, kept.values(), _KEPT)
            return run_tests(self.scratch, layers, self.scratch, self.log, self.watcher)

    def _run(self, number: int) -> None:
        with _make_scratch(self.scratch):
            build = self.scratch / "build"
            with name_folder_in_errors(self.scratch, TEMPORARY_FIX):
                self._write_build(build, number)
            script = host_script.step_script(self.plan, number, build)
            command = ["bash", "--noprofile", "--norc", "-c", script]
            env = {**environment(), "TMPDIR": str(build / "tmp")}
            if processes.stream(command, log=self.log, on_line=self.watcher, env=env) != 0:
                raise BuildError(self.watcher.problem("the step failed"))

    def _write_build(self, build: Path, number: int) -> None:
        build_folder.copy_settings(build, host_settings.prepare_native(self.scratch))
        files_of_step = build_files.of_step(self.plan.steps[number])
        write_files(build, (*build_files.programs(), *files_of_step), build_files.BUILD)
        (build / "prefix").write_text(f"{self.folder}\n", encoding="utf-8")
        refusal = host_script.no_packages(self.plan.site)
        (build / "bin/apt-install").write_text(refusal, encoding="utf-8")


def kept_files(plan: Plan, folder: Path) -> dict[str, LayerFile]:
    """Return the files of the plan and its tests, by their names below the folder."""
    tests = host_script.test_script(plan, folder)
    runner = LayerFile.of_text(f"{_KEPT}/{host_script.RUN_TESTS}", tests)
    files_of = (*build_files.list_kept_files(plan), runner)
    return {str(Path(file.path).relative_to(_KEPT)): file for file in files_of}


def with_parents(names: Iterable[str]) -> set[str]:
    """Return the names of files with those of the folders above them."""
    return {str(path) for name in names for path in (Path(name), *Path(name).parents[:-1])}


def run_tests(
    folder: Path, layers: Sequence[str] | None, scratch: Path, log: Path, watcher: OutputParser
) -> int:
    """Run the tests that an installation keeps; return the exit status. They write to `scratch`."""
    command = ["bash", "--noprofile", "--norc", folder / host_script.RUN_TESTS, scratch]
    only = {} if layers is None else {"SIFWRIGHT_TESTS": " ".join(layers)}
    env = {**environment(), **only}
    return processes.stream(list(map(str, command)), log=log, on_line=watcher, env=env)


@contextmanager
def _make_scratch(folder: Path) -> Iterator[None]:
    """Make an empty folder that is gone afterwards. A run that was killed may have left one."""
    remove(folder)
    with name_folder_in_errors(folder, TEMPORARY_FIX):
        folder.mkdir(mode=0o700, parents=True)
    try:
        yield
    finally:
        remove(folder)
