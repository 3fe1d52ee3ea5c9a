"""Check that the host has all that an installation needs, before anything is written."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from sifwright.errors import MachineError, Problem
from sifwright.install.native import host_script, layer_needs
from sifwright.plan.layer_order import is_on
from sifwright.plan.model import Plan, Step
from sifwright.plan.native import ENV_MANAGERS
from sifwright.plan.select_layers import why_not_suitable
from sifwright.render import shell
from sifwright.render.templating import template
from sifwright.system import free_space, processes
from sifwright.system.os_errors import nearest_existing_parent

_COMPILERS = "^(gcc|g[+][+]|prgenv|nvhpc|intel|oneapi|aocc|llvm|clang|amd|cce)"
# Kinds of sources and the programs that fetch them.
_FETCHERS = {"git": "git", "archive": "curl", "pip": "curl"}
# Programs that layers call, with the names of modules that may have them.
_PROGRAMS = {
    "compilers": [(_COMPILERS, name) for name in ("${CC:-cc}", "${CXX:-c++}", "${MAKE:-make}")],
    "mpi": [("mpi|prgenv", "${MPICC:-mpicc}")],
    "cuda-toolkit": [("cuda|nvhpc", "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")],
    "rocm-toolkit": [("rocm", "${ROCM_PATH:-/opt/rocm}/bin/hipcc")],
    **{name: [(f"^{name}(/|$)", name)] for name in _FETCHERS.values()},
}
# The compilers among them, with the language and the ending of a source file.
_LANGUAGES = {
    "${CC:-cc}": ("c", "c"),
    "${CXX:-c++}": ("c++", "cc"),
    # It refuses a host compiler that is too new for it.
    "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc": ("c++", "cu"),
}
_LACKS = "sifwright: lacks"
_NEED = "need"
# Kinds of things that print why they fail.
_QUOTED = ("module", "compiler")
# Modules may lie on a busy shared file system.
_SECONDS = 600
_KILL_SECONDS = 5
# Status of timeout(1) for a script that ends at the first signal. SIGKILL ends timeout, too.
_TIMED_OUT = (124, -signal.SIGKILL)
_MOST_LINES = 12
# Files and folders that an installation makes beside those of its layers; 45 were counted.
_OWN_FILES = 50


def require(plan: Plan, env: Mapping[str, str]) -> list[Problem]:
    """Raise `MachineError` with all modules, variables, programs and files that the host lacks.

    `env` are the variables of a step. Nothing is written. Returns notes of what the layers can do
    without.
    """
    # It ends the programs of modules, too.
    command = ["timeout", f"--kill-after={_KILL_SECONDS}", f"{_SECONDS}"]
    command += ["bash", "--noprofile", "--norc", "-c", _script(plan)]
    lines: list[str] = []
    status = processes.stream(command, log=Path(os.devnull), on_line=lines.append, env=env)
    problems, output = _problems(plan, lines)
    if status != 0:
        message = "its modules and programs cannot be asked for"
        if status in _TIMED_OUT:
            message = f"its modules and programs do not answer in {_SECONDS} s"
        fix = f"Correct modules.init of defs/sites/{plan.site.name}.yaml, or load what it needs."
        message += _quoted(output)
        problems.append(Problem(where=f"site '{plan.site.name}'", what=message, fix=fix))
    if errors := [problem for problem in problems if problem.severity == "error"]:
        raise MachineError(*errors)
    return problems


def _problems(plan: Plan, lines: list[str]) -> tuple[list[Problem], list[str]]:
    """Return the problems in the script's lines, and the lines behind the last one."""
    problems: list[Problem] = []
    output: list[str] = []
    for line in filter(str.strip, lines):
        if not line.startswith(_LACKS):
            output.append(line)
            continue
        _, kind, *words = line.split("\t")
        problem = _problem(plan, kind, *words)
        if kind in _QUOTED:
            problem = replace(problem, what=problem.what + _quoted(output))
        problems.append(problem)
        output = []
    return problems, output


def _quoted(output: list[str]) -> str:
    """Return the last lines of a program, to stand below a message."""
    return "".join(f"\n    | {line}" for line in output[-_MOST_LINES:])


def require_space(
    plan: Plan, root: Path, scratch: Path, installed: int, freed: free_space.Room
) -> None:
    """Raise `MachineError` if steps find too little room, or too few inodes.

    `installed` bytes are there already; `freed` is the room of what will be removed below the root.
    A step that compiles takes room in the scratch folder. Wheels are compressed there.
    """
    sizes = [(plan.declared_bytes(step), bool(step.sources)) for step in plan.steps]
    kept = max(0, sum(size for size, is_compiled in sizes if not is_compiled) - installed)
    unpacked = max(size if is_compiled else size // 2 for size, is_compiled in sizes)
    is_same = _device(root) == _device(scratch)
    fix = "Free some, or name another --prefix."
    _require(root, kept + unpacked if is_same else kept, "for the installation", fix, freed)
    fix = "Free some, or set APPTAINER_TMPDIR to another folder."
    _require(scratch, unpacked, "while a step runs", fix, freed if is_same else free_space.Room())


def _require(folder: Path, size: int, use: str, fix: str, freed: free_space.Room) -> None:
    free_space.require_free_space(folder, size, use, fix, freed)
    files = _OWN_FILES + size // free_space.BYTES_PER_FILE
    if message := free_space.lacking_inodes(folder, files, freed):
        raise MachineError.of(message, where=str(folder), fix=fix)


def _device(folder: Path) -> int:
    return nearest_existing_parent(folder).stat().st_dev


def _script(plan: Plan) -> str:
    """Return the script of bash that prints what the host lacks."""
    site, software = plan.site, plan.site.native
    names = {step.layer.name for step in plan.steps}
    programs = list(_programs(plan))
    values = {
        "lacks": _LACKS,
        "need": _NEED,
        "modules": site.modules,
        "loaded": host_script.loaded_modules(site, is_build=True),
        "library_path": shell.variables(site.modules.library_path),
        "exports": [
            (name, value, shell.variables(value))
            for name, value in (software.environment if software else {}).items()
        ],
        "python": plan.variables.get("HOST_PYTHON", "python3"),
        "version": plan.variables.get("HOST_PYTHON_VERSION", ""),
        "makes_venv": ENV_MANAGERS["venv"] in names,
        "makes_conda": ENV_MANAGERS["conda"] in names,
        "programs": programs,
        "newest_gcc": plan.facts.get("newest-gcc", ""),
        "compilers": [(*item, *_LANGUAGES[item[2]]) for item in programs if item[2] in _LANGUAGES],
        "needs": {
            (item.need.kind, item.need.name): f"(^|/)({item.need.module})"
            for item in layer_needs.layer_needs(plan)
        },
    }
    return template("install/native/templates/host_needs.sh.j2").render(values)


def _programs(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield what layers call: the word, the names of modules that may have it, the program."""
    provided = plan.site.native.provides if plan.site.native else ()
    for word, programs in _PROGRAMS.items():
        if word in (*provided, *_FETCHERS.values()) and _users(plan, word):
            yield from ((word, *program) for program in programs)


def _users(plan: Plan, word: str) -> list[str]:
    """Return the layers that need the word at this site."""
    return sorted({step.layer.name for step in plan.steps if word in _words(plan, step)})


def _words(plan: Plan, step: Step) -> Iterator[str]:
    yield from (_FETCHERS[source.kind] for source in step.sources)
    for need in step.layer.requires:
        if is_on(need, step.options) and not why_not_suitable(need.suits, plan.site):
            yield need.name


def _problem(plan: Plan, kind: str, name: str, detail: str, alternatives: str) -> Problem:
    """Return the problem of one thing that is missing; modules that may have it are named."""
    modules = "".join(f" The site has module {module}." for module in alternatives.split())
    if kind == _NEED:
        problem = layer_needs.problem(plan, detail, name)
        return replace(problem, fix=problem.fix + modules)
    message, fix = _MESSAGES[kind]
    file = f"defs/sites/{plan.site.name}.yaml"
    words = {"name": name, "detail": detail, "file": file}
    words["python"] = plan.variables.get("HOST_PYTHON_VERSION", "")
    words["layers"] = ", ".join(_users(plan, detail))
    words["key"] = "modules.host" if name in plan.site.modules.host else "native.modules"
    where = f"site '{plan.site.name}'"
    return Problem(where=where, what=message.format(**words), fix=fix.format(**words) + modules)


# Problem and fix by the first word of a line of the script's output.
_MESSAGES = {
    "command": (
        "there is no command 'module', and these are to be loaded: {name}",
        "Install on a machine of the site, or name its file in modules.init of {file}.",
    ),
    "module": (
        "module '{name}' cannot be loaded",
        "Name one that is there in {key} of {file}.",
    ),
    "variable": (
        "no module sets {name}, which {detail} names",
        "Name the module that sets it in native.modules of {file}.",
    ),
    "python": (
        "there is no program '{name}', which is to be the host's Python",
        "Name its module in modules.host of {file}, or the program by --set host.program=PATH.",
    ),
    "broken": (
        "{name} cannot be run as a Python",
        "Name its module in modules.host of {file}, or the program by --set host.program=PATH.",
    ),
    "version": (
        "{name} is Python {detail}, and the plan is for {python}",
        "Name its module in modules.host of {file}, or plan with --set host.python={detail}.",
    ),
    "venv": (
        "{name} has no venv, or no ensurepip",
        "Name a module of a Python with both in modules.host of {file}, or install them.",
    ),
    "compiler": (
        "{name} cannot compile, which layers {layers} need",
        "Name the module that it needs in native.modules of {file}, or set another compiler there.",
    ),
    "gcc": (
        "gcc is release {name}, and the plan's CUDA compiler takes none after {detail}",
        "In {file}, name the module of an older gcc in native.modules, or NVCC_CCBIN's compiler.",
    ),
    "program": (
        "there is no program '{name}', which layers {layers} need",
        "Name the module that has it in native.modules of {file}, or install it.",
    ),
}
