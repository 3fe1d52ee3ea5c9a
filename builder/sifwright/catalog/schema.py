"""Check a YAML document against its JSON Schema, and report each mistake in plain words."""

from __future__ import annotations

import difflib
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from itertools import islice
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from sifwright.catalog.script_rules import refuse_text
from sifwright.catalog.yaml_document import Document, Path
from sifwright.errors import Problem, quoted
from sifwright.system.terminal import escape_name

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

MAX_LISTED = 30
MAX_FINDINGS = 50
_TYPE_NAMES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "null": "nothing",
}
_REGEX_FAULTS = (re.error, OverflowError, RecursionError, ValueError, Warning)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the closest known word as a question, then the known words as far as they fit."""
    known = list(dict.fromkeys(map(escape_name, known)))
    if not known:
        return "There are none."
    lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word[:100].lower(), lower, n=1)
    question = f"Did you mean '{lower[close[0]]}'? " if close else ""
    listed = ", ".join(known) if len(known) <= MAX_LISTED else f"{known[0]} … {known[-1]}"
    return f"{question}Known: {listed}."


def check_document(document: Document, kind: str, file: str) -> Iterator[Problem]:
    """Yield the first findings, in the order of the file."""
    if _fits(document.data, kind):
        return
    errors = islice(_validator(kind).iter_errors(document.data), MAX_FINDINGS)
    findings = [finding for error in errors for finding in _explain(error, document)]
    # Python's patterns end before a line break, too.
    findings = findings or [(1, "a line break or another character is where none belongs", "")]
    for line, message, fix in sorted(dict.fromkeys(findings))[:MAX_FINDINGS]:
        yield Problem(where=f"{file}:{line}", what=message, fix=fix)


def _fits(data: object, kind: str) -> bool:
    """Return whether the document fits its schema, in a thirtieth of the time of `jsonschema`."""
    try:
        return _fast_validator(kind).is_valid(data)
    except _REGEX_FAULTS:  # ValueError also: a value that JSON has not, such as a date
        return False


@cache
def _fast_validator(kind: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        json.loads(schema_text(kind)),
        formats={"line": _is_line, "regex": _is_regex},
        validate_formats=True,
    )


@cache
def _validator(kind: str) -> Draft202012Validator:
    # 50 ms, which only a mistake in a file costs
    from jsonschema import Draft202012Validator, FormatChecker  # noqa: PLC0415

    formats = FormatChecker(formats=())
    formats.checks("line")(_is_line)
    formats.checks("regex", raises=_REGEX_FAULTS)(_is_regex)
    return Draft202012Validator(json.loads(schema_text(kind)), format_checker=formats)


def schema_text(kind: str) -> str:
    """Return the schema of a kind of file."""
    return (
        resources.files("sifwright")
        .joinpath("catalog", "schemas", f"{kind}.json")
        .read_text(encoding="utf-8")
    )


def _is_line(value: object) -> bool:
    return not (isinstance(value, str) and refuse_text(value))


def _is_regex(pattern: object) -> bool:
    """Return true for a pattern; raises one of `_REGEX_FAULTS` for another text."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if isinstance(pattern, str):
            re.compile(pattern)
            _whole(pattern)
    return True


def matches_whole(pattern: str, text: str) -> bool:
    """Tell whether a pattern fits all of a text; `re` takes hours for one such as `(a+)+`."""
    return _whole(pattern).is_valid(text)


@cache
def _whole(pattern: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"pattern": f"^(?:{pattern})$"})


def _path(error: ValidationError) -> Path:
    """Return the path of the error; for a rule about keys, that of the key."""
    path: Path = tuple(error.absolute_path)
    of_key = "propertyNames" in error.absolute_schema_path and isinstance(error.instance, str)
    return (*path, str(error.instance)) if of_key else path


def _explain(error: ValidationError, document: Document) -> Iterator[tuple[int, str, str]]:
    """Yield line, what is wrong, and what to do."""
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        yield from _unknown_keys(error, document)
        return
    # The errors inside the form that a value has, if it fits none of several forms.
    forms = (error.context or ()) if error.validator == "anyOf" else ()
    if inner := [e for e in forms if e.validator != "type" or e.relative_path]:
        for cause in inner:
            yield from _explain(cause, document)
        return
    path = _path(error)
    words = _WORDS.get(str(error.validator), _other_words)
    message, fix = words(error, document.texts.get(path, ""))
    yield document.line(path), f"{_name(path)}: {message}" if path else message, fix


def _unknown_keys(error: ValidationError, document: Document) -> Iterator[tuple[int, str, str]]:
    rules: Any = error.schema
    known: dict[str, Any] = rules.get("properties", {})
    instance: Any = error.instance
    for key in islice((key for key in instance if key not in known), MAX_FINDINGS):
        path: Path = (*error.absolute_path, key)
        yield document.line(path), f"unknown key '{_name(path)}'", did_you_mean(key, known)


def _name(path: Path) -> str:
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")


def _other_words(error: ValidationError, _text: str) -> tuple[str, str]:
    return error.message[:200], "See the schema's description of this key."


def _type_names(error: ValidationError) -> list[str]:
    wanted: Any = error.validator_value
    return wanted if isinstance(wanted, list) else [wanted]


def _form(error: ValidationError) -> str:
    """Return the form of a text, by examples if the schema has some."""
    rules: Any = error.schema
    if examples := rules.get("examples"):
        return f"For example: {', '.join(examples)}"
    return f"It must match {error.validator_value}"


def _format_words(error: ValidationError, text: str) -> tuple[str, str]:
    instance: Any = error.instance
    if error.cause:
        return f"{quoted(instance)}: {error.cause}", "Mend the regular expression."
    problem = refuse_text(instance)
    return (problem.what, problem.fix) if problem else _other_words(error, text)


def _wrong_type(value: object, wanted: list[str], text: str) -> tuple[str, str]:
    *most, last = (_TYPE_NAMES[name] for name in wanted)
    needed = f"{', '.join(most)} or {last}" if most else last
    if "string" in wanted and isinstance(value, bool | int | float):
        kind = "true or false" if isinstance(value, bool) else f"the number {value}"
        return f"{text} is read as {kind}; {needed} is needed", f'Put it in quotes: "{text}"'
    got = _TYPE_NAMES["object"] if isinstance(value, dict) else quoted(value)
    got = _TYPE_NAMES["null"] if value is None else got
    return f"{needed} is needed, not {got}", f"Write {needed} there."


# The mistake and its remedy, by the name of the rule. The functions get the error and the
# value as it is written.
_WORDS: Mapping[str, Callable[[Any, str], tuple[str, str]]] = {
    "anyOf": lambda error, text: _wrong_type(
        error.instance, [name for inner in error.context for name in _type_names(inner)], text
    ),
    "type": lambda error, text: _wrong_type(error.instance, _type_names(error), text),
    "enum": lambda error, text: (
        f"{quoted(text or error.instance)} is not known",
        did_you_mean(text, map(str, error.validator_value)),
    ),
    "required": lambda error, _: (
        f"missing: {', '.join(key for key in error.validator_value if key not in error.instance)}",
        "Add it.",
    ),
    "pattern": lambda error, _: (f"{quoted(error.instance)} does not fit", _form(error)),
    "format": _format_words,
    **dict.fromkeys(
        ("minLength", "minItems", "minProperties"),
        lambda *_: ("empty", "Write something there, or leave the key out."),
    ),
    "dependentRequired": lambda error, _: (
        error.message.replace("is a dependency of", "is missing, needed by"),
        "Add it.",
    ),
    "maxProperties": lambda error, _: (
        f"{', '.join(error.instance)}: only one of these is allowed here",
        "Keep one.",
    ),
    "oneOf": lambda error, _: (
        "exactly one of these is needed: "
        + ", ".join(form["required"][0] for form in error.validator_value),
        "Keep or add one.",
    ),
}
