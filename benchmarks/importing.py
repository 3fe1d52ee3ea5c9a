"""Using an image: its start, importing torch, reading its files; layered, flat, and no image."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from figures import Result, Skipped, ratio
from plain import program
from project import IMAGE, LAYOUTS, SITE, Project

from sifwright.system.tempdirs import temporary_root, workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from figures import Figure, Settings

__all__ = ["import_torch", "ranks_import_torch"]

BY_VENV = 1.9
VENV, IN_IMAGE = "plain venv", Path("/opt/venv")
IMPORT = "import torch"
RANKS = 8
# A program of a job that lasts until its input ends.
SHOW_PYTHON = "import sys; print(sys.executable, flush=True); sys.stdin.read()"
DROP = Path("/proc/sys/vm/drop_caches")
Walls = dict[str, list[float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Side:
    """The words before a command in one of Python's environments, and the files it reads."""

    prefix: Sequence[str]
    venv: Path
    files: Path

    def commands(self) -> dict[str, list[str]]:
        python = [*self.prefix, str(self.venv / "bin" / "python"), "-c"]
        read = f"find {self.venv} -type f -exec cat {{}} + >/dev/null"
        return {
            "start Python": [*python, "pass"],
            IMPORT: [*python, IMPORT],
            "read all files": [*self.prefix, "sh", "-c", read],
        }


def import_torch(settings: Settings) -> Result:
    """Do the same in turn in the layered and the flat SIF and in a venv on disk."""
    engine = program(settings)
    project = Project.kept(settings)
    sides = {}
    for layout in LAYOUTS:
        settings.note(f"sifwright, {layout} …")
        project.build(layout=layout)
        sif = project.sif(layout)
        prefix = [engine, "exec", "--no-home", str(sif)]
        sides[layout] = _Side(prefix=prefix, venv=IN_IMAGE, files=sif)
    sides[VENV] = _on_disk(settings, sides["flat"])
    settings.note("warm and cold …")
    figures = []
    for command in sides[VENV].commands():
        commands = {name: side.commands()[command] for name, side in sides.items()}
        warm = _in_turn(commands, 9, lambda: None)
        cold = _in_turn(commands, 3, lambda: _drop_caches(sides.values()))
        figures += _figures(command, "warm", warm) + _figures(command, "cold", cold)
    return Result(figures=figures, details={"cold means": _how_cold()})


def ranks_import_torch(settings: Settings) -> Result:
    """Import torch in 8 ranks: from an installed prefix, its copy as jobs make it, a flat SIF."""
    engine, project = program(settings), Project.kept(settings)
    project.build(layout="flat")
    prefix = settings.folder / "prefix"
    install = ["--project", str(settings.project), "install", SITE, IMAGE, "--prefix", str(prefix)]
    subprocess.run([sys.executable, "-m", "sifwright", *install], check=True, stdout=sys.stderr)
    version = (prefix / "current").resolve()
    sif = project.sif("flat")
    with workspace(temporary_root()) as disk, _staged(settings, version, disk) as python:
        in_sif = [engine, "exec", "--no-home", str(sif), str(IN_IMAGE / "bin/python")]
        pythons = {"staged copy": python, "prefix": str(version / "venv/bin/python")}
        starts = {"flat SIF": in_sif, **{name: [path] for name, path in pythons.items()}}
        commands = {name: _ranks(start) for name, start in starts.items()}
        walls = _in_turn(commands, 3, lambda: None)
        calls = {name: _calls(command, [version, sif]) for name, command in commands.items()}
    sides = [{name: walls[name], "prefix": walls["prefix"]} for name in ("staged copy", "flat SIF")]
    figures = [ratio(f"{RANKS} ranks, {next(iter(x))} / prefix", "s", x) for x in sides]
    return Result(figures=figures, details={"calls with a file's name: all, shared": calls})


@contextmanager
def _staged(settings: Settings, version: Path, disk: Path) -> Iterator[str]:
    """Yield the Python in the copy that a job has made of an installation; then end the job."""
    sifwright = [sys.executable, "-m", "sifwright", "--project", str(settings.project)]
    subprocess.run([*sifwright, "stage", str(version)], check=True, stdout=sys.stderr)
    script = disk / "job.sh"
    words = ["jobscript", "--site", SITE, "--nodes", "1", "--environment", str(version), "--stage"]
    words += ["--output", str(script), "--", "-c", SHOW_PYTHON]
    subprocess.run([*sifwright, *words], check=True, stdout=sys.stderr)
    env = {**os.environ, "SIFWRIGHT_STAGE_DIR": str(disk)}
    pipe = subprocess.PIPE
    with subprocess.Popen([script], env=env, stdin=pipe, stdout=pipe, encoding="utf-8") as job:
        assert job.stdout is not None  # for the type checker: PIPE was asked for
        python = job.stdout.readline().rstrip("\n")
        if not python:
            raise subprocess.CalledProcessError(job.wait(), str(script))
        if not python.startswith(f"{disk}/"):
            raise Skipped(f"no copy of {version} below {disk}")
        yield python


def _ranks(start: Sequence[str]) -> list[str]:
    loop = f'for rank in $(seq {RANKS}); do "$@" & done; wait'
    return ["sh", "-c", loop, "sh", *start, "-c", IMPORT]


def _calls(command: Sequence[str], shared: Sequence[Path]) -> tuple[int, int] | str:
    """Return the number of calls that name a file: all, and those in the shared folder."""
    if not shutil.which("strace"):
        return "not counted: apt install strace"
    trace = ["strace", "-f", "-qq", "-e", "trace=%file", *command]
    done = subprocess.run(trace, check=True, capture_output=True, encoding="utf-8")
    lines = [x for x in done.stderr.splitlines() if "(" in x and " resumed>" not in x]
    return len(lines), sum(any(str(path) in x for path in shared) for x in lines)


def _in_turn(
    commands: Mapping[str, Sequence[str]], rounds: int, before: Callable[[], None]
) -> Walls:
    """Return the seconds of each command, without the first time."""
    walls: Walls = {name: [] for name in commands}
    for _ in range(1 + rounds):
        for name, command in commands.items():
            before()
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            walls[name].append(time.perf_counter() - start)
    return {name: row[1:] for name, row in walls.items()}


def _figures(text: str, state: str, walls: Walls) -> list[Figure]:
    goal = BY_VENV if (text, state) == (IMPORT, "warm") else None
    return [
        ratio(
            f"{text}, {layout} / venv, {state}",
            "s, exec included",
            {layout: walls[layout], VENV: walls[VENV]},
            goal,
        )
        for layout in LAYOUTS
    ]


def _on_disk(settings: Settings, image: _Side) -> _Side:
    """Return the same packages in a venv of this machine, kept until the image has others."""
    # Not `pip freeze`, which names files of the build where a wheel was one.
    ask = [*image.prefix, "python", "-m", "pip", "list", "--format", "freeze"]
    wanted = subprocess.run(ask, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
    folder, stamp = settings.folder / "venv", settings.folder / "venv" / "packages.txt"
    side = _Side(prefix=[], venv=folder, files=folder)
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        settings.note("installing the image's packages on disk …")
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        _install(folder, wanted)
        stamp.write_text(wanted, encoding="utf-8")
    return side


def _install(folder: Path, wanted: str) -> None:
    packages = folder / "wanted.txt"
    packages.write_text(wanted, encoding="utf-8")
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
    done = subprocess.run(
        [*command, "--requirement", str(packages)],
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it did not say why"])[-1]
        raise Skipped(f"no venv with the image's packages on this machine: pip: {last}")


def _how_cold() -> str:
    if os.access(DROP, os.W_OK):
        return "the page cache of the whole machine was dropped"
    return "the files were dropped from the page cache (posix_fadvise); the engine's were not"


def _drop_caches(sides: Iterable[_Side]) -> None:
    os.sync()  # the kernel drops only pages that are on disk
    if os.access(DROP, os.W_OK):
        DROP.write_text("3", encoding="utf-8")
        return
    for side in sides:
        for path in side.files.rglob("*") if side.files.is_dir() else [side.files]:
            if path.is_file():
                _forget(path)


def _forget(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
