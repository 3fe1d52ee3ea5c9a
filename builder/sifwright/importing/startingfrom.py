"""What the image that a Dockerfile starts from says of the instructions that follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sifwright.errors import SifwrightError
from sifwright.imagesource import names
from sifwright.imagesource.model import BadImage, Config

if TYPE_CHECKING:
    from sifwright.importing.findings import Findings
    from sifwright.importing.instructions import Instruction

__all__ = ["Look", "asked", "check", "unasked"]

# What it says of itself, or why that is not known.
Look = Callable[[str], Config | str]

_PROCESSOR = "x86_64"
_DEFAULT_SHELL = ("/bin/sh", "-c")


def unasked(_: str) -> str:
    return "--offline"


def asked(image: str) -> Config | str:
    """Ask its registry, through the mirrors file and with the login."""
    from sifwright.imagesource import remote  # noqa: PLC0415  # most commands need no ssl

    try:
        return remote.config(names.parse(f"docker://{image}"), _PROCESSOR)
    except SifwrightError as error:
        return str(error.problems[0].what)
    except BadImage as error:
        return str(error)


def check(
    line: int, image: str, said: Config | str, listed: list[Instruction], findings: Findings
) -> Config:
    """Say what of it decides here, and refuse what no layer can do."""
    needs = [item for item in listed if item.name in {"RUN", "CMD", "ENTRYPOINT"}]
    if isinstance(said, str):
        if needs:
            text = "what it says of WORKDIR, USER, SHELL, ONBUILD and ENTRYPOINT is not known"
            findings.note(line, f"{text} ({said}): RUN starts in / as root, with /bin/sh")
        return Config(processor=_PROCESSOR)
    for trigger in said.triggers:
        what = f"FROM {image}: its ONBUILD is an instruction of this recipe: {trigger[:80]!a}"
        findings.refuse(line, what, "Start from an image without ONBUILD, and write it here.")
    if said.shell not in {(), _DEFAULT_SHELL} and any(_in_shell(item) for item in needs):
        what = f"FROM {image}: its SHELL is {list(said.shell)}, which reads RUN and CMD"
        findings.refuse(line, what, 'Write them as lists of words, as in RUN ["bash", "-c", …].')
    named = {"WORKDIR": said.folder.rstrip("/"), "USER": said.user}
    for name, value in named.items():
        if value:
            findings.note(line, f"{name} is that of the image: {value!a}")
    return said


def _in_shell(item: Instruction) -> bool:
    return not item.text.lstrip().startswith("[")
