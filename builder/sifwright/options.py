"""Option values: which ones a layer takes, wherever they come from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sifwright.errors import Problem
from sifwright.schema import did_you_mean
from sifwright.scripts import BUILD_ARGUMENT

if TYPE_CHECKING:
    from sifwright.model import Layer, Option, OptionValue

__all__ = ["find_option", "parse_text", "refuse_value", "variable"]

_PYTHON_TYPES = {"string": str, "boolean": bool, "integer": int}
_BOOLEANS = {"true": True, "false": False}


def variable(option: str) -> str:
    """The environment variable that carries an option to a layer's scripts."""
    return "OPT_" + option.upper().replace("-", "_")


def find_option(layer: Layer, name: str) -> Option | Problem:
    if name in layer.options:
        return layer.options[name]
    return Problem(
        what=f"layer '{layer.name}' has no option '{name}'",
        fix=did_you_mean(name, layer.options),
    )


def parse_text(option: Option, text: str) -> OptionValue | Problem:
    """Read a value typed on the command line."""
    if option.type == "boolean" and text in _BOOLEANS:
        return _BOOLEANS[text]
    if option.type == "integer" and re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    if option.type == "string":
        return text
    wanted = "true or false" if option.type == "boolean" else "an integer"
    return Problem(what=f"{text!r} is not {wanted}", fix=f"{option.name}: {option.description}")


def refuse_value(option: Option, value: OptionValue) -> Problem | None:
    """Say why an option cannot have a value, or nothing if it can."""
    if type(value) is not _PYTHON_TYPES[option.type]:
        return Problem(what=f"{value!r} is not of type {option.type}", fix=option.description)
    if option.enum and value not in option.enum:
        fix = did_you_mean(str(value), map(str, option.enum))
        return Problem(what=f"{value!r} is not one of its values", fix=fix)
    return _refuse_text(option, value) if isinstance(value, str) else None


def _refuse_text(option: Option, value: str) -> Problem | None:
    # A line break could open a section of the definition file, whatever the shell quoting.
    if not value.isprintable():
        return Problem(
            what=f"{value!r} holds a line break or another character that cannot be printed",
            fix="Use one line of printable text.",
        )
    if BUILD_ARGUMENT.search(value):
        return Problem(
            what=f"{value!r} holds {{{{ }}}}, which Apptainer replaces as a build argument",
            fix="Leave the double braces out.",
        )
    if option.pattern and not re.fullmatch(option.pattern, value):
        return Problem(what=f"{value!r} does not match {option.pattern}", fix=option.description)
    return None
