"""Render a plan as an Apptainer definition file: one with a folder, or one that needs none."""

import hashlib
import io
import pickle
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

from sifwright import __version__
from sifwright.catalog.model import Bootstrap, LayerFile
from sifwright.errors import MachineError, PlanError
from sifwright.plan.model import Plan, Step
from sifwright.render import build_files, shell
from sifwright.render.templating import template

# Apptainer 1.4.5 refuses a section of 64 KiB ("token too long") but joins sections of one name.
_SECTION_BYTES = 64 << 10
_PIECE_BYTES = 24 << 10
_COLUMNS = 90
_MACHINE_VALUES = {
    "debian-mirror": "the address of a Debian mirror",
}
# The command that starts N ranks, before the engine; without a launcher, the run script does.
_LAUNCH = {
    "srun": "srun -n N ",
    "mpiexec": "mpiexec -n N ",
    "mpirun": "mpirun -np N ",
    "flux": "flux run -n N ",
}
AS_PLANNED = {name: f"({text})" for name, text in _MACHINE_VALUES.items()}


def definition(plan: Plan, machine: Mapping[str, str]) -> str:
    """Render the definition file that needs no other file.

    `machine` holds what only the building machine knows: `debian-mirror`, and lines of the header
    that it redirects, by keyword. Raises `MachineError` if the plan needs a value that neither the
    machine nor an option gives.
    """
    return render_definition(plan, _start(plan, machine))


def folder_definition(plan: Plan, machine: Mapping[str, str]) -> str:
    """Render the definition file of a recipe folder, which copies the files beside it.

    Raises the errors of `definition`.
    """
    return render_definition(plan, _start(plan, machine, _copied(plan)))


def _copied(plan: Plan) -> list[tuple[str, str]]:
    build = build_files.BUILD
    pairs = [("runner/*", f"{build}/"), ("layers", f"{build}/layers"), ("kept", f"{build}/image")]
    # debootstrap copies these files from the building machine.
    names = ("hostname", "resolv.conf") if _is_debootstrap(plan) else ()
    return [*pairs, *((build_files.EMPTY, f"/etc/{name}") for name in names)]


def _is_debootstrap(plan: Plan) -> bool:
    return plan.steps[0].header.get("Bootstrap") == "debootstrap"


def render_definition(plan: Plan, start: Mapping[str, object]) -> str:
    """Render the definition file on its start; templates/start.def.j2 names its parts."""
    is_whole = not start["copied"]
    steps = [_step_text(step, is_whole=is_whole) for step in plan.steps]
    text = template("render/templates/definition.def.j2").render(
        mark=build_files.MARK,
        plan=plan,
        **start,
        steps=steps,
        record=_carried(build_files.list_kept_files(plan)) if is_whole else "",
        environment=[line for step in plan.steps for line in build_files.exports(step)],
        labels=list(labels(plan)),
        runscript=build_files.RUNSCRIPT,
        has_run_scripts=plan.has_run_scripts,
        exec=" ".join(plan.site.exec_words),
        launch=_LAUNCH.get(plan.site.launcher, ""),
        ranks="" if plan.site.launcher in _LAUNCH else "--nproc-per-node N ",
    )
    _refuse_long_section(text)
    return text


@cache
def planned_definition(plan: Plan) -> str:
    """Render `definition` without the values that only the building machine knows.

    Where something comes from is not what it is: another mirror makes no other image.
    """
    return definition(plan, AS_PLANNED)


@cache
def rendered_from(plan: Plan) -> str:
    """Return the digest of the sources of `planned_definition`: the plan, and this package."""
    digest = hashlib.sha256(f"{__version__}\n".encode())
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.suffix != ".pyc" and path.is_file():
            digest.update(path.read_bytes())
    # Without references to objects that were written before: equal plans may share other objects.
    pickler = pickle.Pickler(buffer := io.BytesIO())
    pickler.fast = True
    pickler.dump(plan)
    digest.update(buffer.getvalue())
    return digest.hexdigest()


def with_machine(planned: str, plan: Plan, machine: Mapping[str, str]) -> str:
    """Return what `definition` renders, from the text of `planned_definition`: another header.

    Raises the errors of `definition`.
    """
    before, after = (_header_text(plan, values) for values in (AS_PLANNED, machine))
    return planned.replace(before, after, 1)


def _header_text(plan: Plan, machine: Mapping[str, str]) -> str:
    lines = (f"{keyword}: {value}\n" for keyword, value in _header(plan.steps[0], machine))
    return "".join(lines)


def base_definition(plan: Plan, machine: Mapping[str, str]) -> str:
    """Render the first step alone, as a definition file that later steps go on from."""
    steps = [_step_text(plan.steps[0])]
    return template("render/templates/base.def.j2").render(**_start(plan, machine), steps=steps)


def _start(
    plan: Plan, machine: Mapping[str, str], copied: Sequence[tuple[str, str]] = ()
) -> dict[str, object]:
    return {
        "header": list(_header(plan.steps[0], machine)),
        "by_hand": "apptainer build --fakeroot",
        "copied": copied,
        "is_debootstrap": _is_debootstrap(plan),
        "prepare": "",
        "install": "",
        "runner": "" if copied else runner(plan),
    }


def runner(plan: Plan, *others: str) -> str:
    """Return the commands that write the programs which the steps, or others, call."""
    return _carried(build_files.programs(build_files.needed_programs(plan, *others)))


def require_header(base: Step, machine: Mapping[str, str]) -> None:
    """Raise `MachineError` or `PlanError` where `definition` would, for want of a header."""
    tuple(_header(base, machine))


def _header(base: Step, machine: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    header = base.header
    for line in base.layer.bootstrap:
        given = machine.get(line.keyword) or header[line.keyword]
        value = given or machine.get(line.machine or "") or _refuse(base, line)
        if "#" in value:
            message = f"{line.keyword} {value!r}: '#' starts a comment there"
            fix = "Give a value without it."
            raise PlanError.of(message, where=f"header of layer '{base.layer.name}'", fix=fix)
        yield line.keyword, value


def _refuse(base: Step, line: Bootstrap) -> NoReturn:
    option = f"{base.layer.name}.{line.option or ''}"
    message = f"this machine does not give {_MACHINE_VALUES.get(line.machine or '', 'a value')}"
    raise MachineError.of(message, where=option, fix=f"Name one: --set {option}=…")


def _step_text(step: Step, *, is_whole: bool = True) -> dict[str, object]:
    """Return the parts of one step, as the template places them; its files if `is_whole`."""
    return {
        "name": step.layer.name,
        "summary": step.layer.summary,
        "id": step.id,
        "files": _carried(build_files.of_step(step)) if is_whole else "",
        "command": " \\\n        ".join(_lines(build_files.command_words(step))),
        "exports": build_files.exports(step),
    }


def _lines(words: Iterable[str]) -> Iterator[str]:
    """Join words to lines of at most `_COLUMNS`; a longer word has a line of its own."""
    line = ""
    for word in words:
        if line and len(line) + len(word) >= _COLUMNS:
            yield line
            line = ""
        line += f" {word}" if line else word
    yield line


def _carried(files: Iterable[LayerFile]) -> str:
    """Return commands that write these files, in as many sections as they need."""
    return "\n".join(_in_sections(_pieces(list(files))))


def _pieces(files: Sequence[LayerFile]) -> Iterator[str]:
    """Yield commands that write files, in pieces that each fit into a section."""
    yield shell.make_folders({file.path.rpartition("/")[0] for file in files})
    for file in files:
        first, *others = _cut(file.data)
        yield shell.write_file(file.path, first, executable=file.executable)
        yield from (shell.write_file(file.path, piece, append=True) for piece in others)


def _cut(data: bytes) -> Iterator[bytes]:
    """Cut at line ends if there are some, so that text stays readable."""
    while len(data) > _PIECE_BYTES:
        end = data.rfind(b"\n", 0, _PIECE_BYTES) + 1 or _PIECE_BYTES
        yield data[:end]
        data = data[end:]
    yield data


def _in_sections(pieces: Iterable[str]) -> Iterator[str]:
    """Begin a new section where the next piece might not fit into the one before."""
    size = 0
    for piece in pieces:
        size += len(piece.encode())
        if size > _SECTION_BYTES // 2:
            yield "%post"
            size = len(piece.encode())
        yield piece


def _refuse_long_section(text: str) -> None:
    for section in re.split(r"^(?=%)", text, flags=re.MULTILINE):
        if len(section.encode()) >= _SECTION_BYTES:
            name, size = section.split("\n", 1)[0] or "the header", len(section.encode())
            message = f"{name} is {size} bytes; Apptainer reads less than {_SECTION_BYTES}"
            fix = "Give the layers fewer and shorter option values."
            raise PlanError.of(message, where="the definition file", fix=fix)


def labels(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "org.opencontainers.image.title", plan.image.name
    yield "org.opencontainers.image.description", plan.image.description
    yield "org.sifwright.version", __version__
    yield "org.sifwright.site", plan.site.name
    yield "org.sifwright.plan", plan.id
