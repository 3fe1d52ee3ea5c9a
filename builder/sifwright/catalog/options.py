"""Option values: check those of files and of the command line."""

import re

from sifwright.catalog.model import Layer, Option, OptionValue, Value
from sifwright.catalog.schema import did_you_mean, matches_whole
from sifwright.catalog.script_rules import refuse_text
from sifwright.errors import Problem, quoted

_PYTHON_TYPES = {"string": str, "boolean": bool, "integer": int}
MAX_DIGITS = 18  # shells count with 64 bits
_BOOLEANS = {"true": True, "false": False}


def variable(option: str) -> str:
    """Return the environment variable that carries an option to a layer's scripts."""
    return "OPT_" + option.upper().replace("-", "_")


def find_option(layer: Layer, name: str) -> Option | Problem:
    if name in layer.options:
        return layer.options[name]
    message = f"layer '{layer.name}' has no option '{name}'"
    return Problem(what=message, fix=did_you_mean(name, layer.options))


def parse_text(option: Option, text: str) -> OptionValue | Problem:
    """Read a value typed on the command line."""
    if option.type == "boolean" and text in _BOOLEANS:
        return _BOOLEANS[text]
    if option.type == "integer" and re.fullmatch(r"[+-]?[0-9]{1,64}", text):
        return int(text)
    if option.type == "string":
        return text
    return _wrong_type(option, text)


def refuse_value(option: Option, value: OptionValue) -> Problem | None:
    """Say why an option cannot have a value, or nothing if it can."""
    if type(value) is not _PYTHON_TYPES[option.type]:
        return _wrong_type(option, value)
    if option.enum and value not in option.enum:
        fix = did_you_mean(str(value), map(str, option.enum))
        return Problem(what=f"{quoted(value)} is not one of its values", fix=fix)
    if isinstance(value, str):
        return _refuse_text(option, value)
    if abs(value) >= 10**MAX_DIGITS:
        return Problem(what=f"{value} has more than {MAX_DIGITS} digits", fix=option.description)
    return None


def _wrong_type(option: Option, value: OptionValue) -> Problem:
    text = Value(value=value, origin="").text
    if option.type == "string":
        return Problem(what=f"{text} is not text", fix=f'Put it in quotes: "{text}"')
    wanted = "true or false" if option.type == "boolean" else "an integer"
    message = f"{quoted(value) if isinstance(value, str) else text} is not {wanted}"
    return Problem(what=message, fix=option.description)


def _refuse_text(option: Option, value: str) -> Problem | None:
    if problem := refuse_text(value):
        return problem
    if option.pattern and not matches_whole(option.pattern, value):
        message = f"{quoted(value)} does not match {option.pattern}"
        return Problem(what=message, fix=option.description)
    return None
