"""The files that a build writes: what runs the steps, what each step brings, what an image keeps.

All paths are absolute, as they are in the image.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib import resources

from sifwright.catalog.model import ImageStart, LayerFile
from sifwright.plan.model import Plan, Step
from sifwright.plan.plan_file import plan_json
from sifwright.render import shell

# The beginning of a recipe folder's definition file and Dockerfile.
MARK = "# Written by sifwright"
# An empty file of the recipe folder.
EMPTY = "runner/empty"
# The folder of the build itself: nothing of it is in the finished image.
BUILD = "/.sifwright"
# The program of an image; a file, because %runscript itself cannot hold every text.
RUNSCRIPT = "/opt/sifwright/runscript"
# The programs on the PATH of install.sh, and their texts in this package.
_PROGRAMS = {
    **{
        name: f"render/templates/bin/{name}"
        for name in (
            *("apt-install", "build-jobs", "cuda-archs"),
            *("download-build", "fetch-source", "mirrored", "rpm-upgrade"),
        )
    },
    "find-sdist": "host/network/sdist.py",
}
_WORD = re.compile(r"[\w-]+")


@cache
def package_text(name: str) -> str:
    return resources.files("sifwright").joinpath(name).read_text(encoding="utf-8")


def programs(names: Iterable[str] = tuple(_PROGRAMS)) -> Iterator[LayerFile]:
    """Yield the files that run a step, and these programs on the PATH of its install.sh."""
    yield _file(f"{BUILD}/step", "render/templates/step.sh")
    yield _file(f"{BUILD}/trap", "render/templates/trap.sh")
    for name in names:
        yield _file(f"{BUILD}/bin/{name}", _PROGRAMS[name], executable=name != "find-sdist")


def needed_programs(plan: Plan, *others: str) -> list[str]:
    """Return the programs that the layers of a plan call, with the programs that those call."""
    names: set[str] = set()
    scripts = [file.data.decode(errors="replace") for step in plan.steps for file in of_step(step)]
    while new := {*others, *_PROGRAMS.keys() & set(_WORD.findall("\n".join(scripts)))} - names:
        names |= new
        scripts = [package_text(_PROGRAMS[name]) for name in new]
    return sorted(names)


def of_step(step: Step) -> Iterator[LayerFile]:
    """Yield the files of a step's layer, and its install.sh."""
    folder = f"{BUILD}/layers/{step.layer.name}"
    for file in step.files:
        yield replace(file, path=f"{folder}/{file.path}")
    yield LayerFile.of_text(f"{folder}/install.sh", step.layer.install)


def command(step: Step) -> str:
    """Return the command of sh that runs a step in the image."""
    return " ".join(command_words(step))


def command_words(step: Step) -> list[str]:
    """Return the words of the command; spaces in a word are quoted."""
    variables = [*shell.assignments(step.options), *shell.sources(step.sources)]
    return [*(["env"] if variables else []), *variables, f"bash {BUILD}/step {step.layer.name}"]


def exports(step: Step) -> tuple[str, ...]:
    """Return the lines of sh that set a step's environment for later steps and the image."""
    return tuple(shell.export(rule) for rule in step.layer.env)


def script(plan: Plan, number: int) -> str:
    """Return the script of sh that runs one step after the others, as %post would."""
    return _after_others(plan, number, "set -ex", command(plan.steps[number]))


def shell_script(plan: Plan, number: int) -> str:
    """Return the script of sh that opens a shell where the step would begin."""
    return _after_others(plan, number, "set -e", f"exec {command(plan.steps[number])} shell")


def _after_others(plan: Plan, number: int, *lines: str) -> str:
    before = (line for step in plan.steps[:number] for line in exports(step))
    return "\n".join([lines[0], "umask 022", *before, *lines[1:], ""])


def list_kept_files(plan: Plan) -> Iterator[LayerFile]:
    """Yield the files that the image keeps: the layers' tests, the program for them, the plan."""
    yield _file("/opt/sifwright/trap", "render/templates/trap.sh")
    yield _file("/opt/sifwright/run-tests", "render/templates/run-tests.sh")
    for step in plan.steps:
        if step.layer.test:
            path = f"/opt/sifwright/tests/{step.layer.name}/test.sh"
            yield LayerFile.of_text(path, step.layer.test)
    if plan.image.start:
        yield LayerFile.of_text(RUNSCRIPT, runscript(plan.image.start), executable=True)
    yield LayerFile.of_text("/opt/sifwright/plan.json", plan_json(plan))


def runscript(start: ImageStart) -> str:
    """Give the script that starts what `docker run` would, with the further words of a user."""
    if start.script:
        return start.script
    lines = ["#!/bin/sh"]
    if start.workdir:
        lines.append(f"cd {shlex.quote(start.workdir)} || exit")
    if start.cmd:
        lines.append(f'[ "$#" -gt 0 ] || set -- {shlex.join(start.cmd)}')
    entrypoint = f"{shlex.join(start.entrypoint)} " if start.entrypoint else ""
    return "\n".join([*lines, f'exec {entrypoint}"$@"', ""])


def _file(path: str, name: str, *, executable: bool = False) -> LayerFile:
    return LayerFile.of_text(path, package_text(name), executable=executable)
