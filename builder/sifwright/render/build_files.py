"""The files that a build writes: what runs the steps, what each step brings, what an image keeps.

All paths are absolute, as they are in the image.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from sifwright.catalog.model import LayerFile
from sifwright.plan.plan_file import plan_json
from sifwright.render import runscript, shell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.plan.model import Plan, Step

__all__ = [
    "BUILD",
    "command",
    "exports",
    "kept",
    "of_step",
    "package_text",
    "programs",
    "script",
    "shell_script",
]

# The folder of the build itself: nothing of it is in the finished image.
BUILD = "/.sifwright"
_NAMES = ("apt-install", "build-jobs", "cuda-archs", "fetch-source", "mirrored")


@cache
def package_text(name: str) -> str:
    """A file of the package."""
    return resources.files("sifwright").joinpath(name).read_text()


def programs() -> Iterator[LayerFile]:
    """What runs a step, and the programs on the PATH of its install.sh."""
    yield _file(f"{BUILD}/step", "render/templates/step.sh")
    yield _file(f"{BUILD}/trap", "render/templates/trap.sh")
    for name in _NAMES:
        yield _file(f"{BUILD}/bin/{name}", f"render/templates/bin/{name}", executable=True)
    yield _file(f"{BUILD}/bin/find-sdist", "host/network/sdist.py")


def of_step(step: Step) -> Iterator[LayerFile]:
    """What a step's layer brings, and its install.sh."""
    folder = f"{BUILD}/layers/{step.layer.name}"
    for file in step.files:
        path = f"{folder}/{file.path}"
        yield LayerFile(path=path, data=file.data, executable=file.executable)
    data = step.layer.install.encode()
    yield LayerFile(path=f"{folder}/install.sh", data=data, executable=False)


def command(step: Step) -> str:
    """What runs a step in the image, as one line of sh."""
    variables = f"{shell.assignments(step.options)}{shell.sources(step.sources)}"
    return f"env {variables}bash {BUILD}/step {step.layer.name}"


def exports(step: Step) -> tuple[str, ...]:
    """The lines of sh that bring a step's environment to later steps, and to the image."""
    return tuple(shell.export(rule) for rule in step.layer.env)


def script(plan: Plan, number: int) -> str:
    """The script of sh that runs one step after the others, as %post of the whole would."""
    return _after_others(plan, number, "set -ex", command(plan.steps[number]))


def shell_script(plan: Plan, number: int) -> str:
    """The script of sh that opens a shell where the step would begin."""
    return _after_others(plan, number, "set -e", f"exec {command(plan.steps[number])} shell")


def _after_others(plan: Plan, number: int, *lines: str) -> str:
    before = (line for step in plan.steps[:number] for line in exports(step))
    return "\n".join([lines[0], "umask 022", *before, *lines[1:], ""])


def kept(plan: Plan) -> Iterator[LayerFile]:
    """What the image keeps of its plan: the layers' tests, what names a line in them, the plan."""
    yield _file("/opt/sifwright/trap", "render/templates/trap.sh")
    for step in plan.steps:
        if step.layer.test:
            path = f"/opt/sifwright/tests/{step.layer.name}/test.sh"
            yield LayerFile(path=path, data=step.layer.test.encode(), executable=False)
    if plan.image.start:
        data = runscript.runscript(plan.image.start).encode()
        yield LayerFile(path=runscript.PATH, data=data, executable=True)
    data = plan_json(plan).encode()
    yield LayerFile(path="/opt/sifwright/plan.json", data=data, executable=False)


def _file(path: str, name: str, *, executable: bool = False) -> LayerFile:
    return LayerFile(path=path, data=package_text(name).encode(), executable=executable)
