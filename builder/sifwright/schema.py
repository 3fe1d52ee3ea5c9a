"""Check a YAML document against its JSON Schema and say every mistake in a person's words."""

from __future__ import annotations

import difflib
import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, cast

from sifwright.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

    from sifwright.yamlfile import Document, Path

__all__ = ["check", "did_you_mean"]

MAX_LISTED = 20
_TYPE_NAMES = {"object": "a mapping", "array": "a list", "string": "text", "null": "nothing"}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The closest known word as a question, then the list as far as it fits a line or two."""
    known = list(dict.fromkeys(known))
    if not known:
        return "There are none."
    close = difflib.get_close_matches(word, known, n=1)
    question = f"Did you mean '{close[0]}'? " if close else ""
    listed = ", ".join(known) if len(known) <= MAX_LISTED else f"{known[0]} … {known[-1]}"
    return f"{question}Known: {listed}."


def check(document: Document, kind: str, file: str) -> Iterator[Problem]:
    """Yield every finding, in the order of the file."""
    errors = _validator(kind).iter_errors(document.data)
    for error in sorted(errors, key=lambda e: _line(document, tuple(e.absolute_path))):
        yield from _explain(error, document, file)


@cache
def _validator(kind: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # noqa: PLC0415  # 50 ms that 'list --help' need not pay

    text = resources.files("sifwright").joinpath("schemas", f"{kind}.json").read_text()
    return Draft202012Validator(json.loads(text))


def _line(document: Document, path: Path) -> int:
    while path and path not in document.lines:
        path = path[:-1]
    return document.lines.get(path, 1)


def _explain(error: ValidationError, document: Document, file: str) -> Iterator[Problem]:
    path: Path = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        yield from _unknown_keys(error, document, file)
        return
    where = f"{file}:{_line(document, path)}"
    what, fix = _words(error, document.texts.get(path, ""))
    yield Problem(where=where, what=f"{_name(path)}: {what}" if path else what, fix=fix)


def _unknown_keys(error: ValidationError, document: Document, file: str) -> Iterator[Problem]:
    rules: Any = error.schema
    known: dict[str, Any] = rules.get("properties", {})
    instance: Any = error.instance
    for key in instance:
        if key not in known:
            path: Path = (*error.absolute_path, key)
            where = f"{file}:{_line(document, path)}"
            yield Problem(
                where=where, what=f"unknown key '{_name(path)}'", fix=did_you_mean(key, known)
            )


def _name(path: Path) -> str:
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")


def _words(error: ValidationError, text: str) -> tuple[str, str]:
    """What is wrong and how to mend it, for the rules our schemas use."""
    rule, instance = str(error.validator), cast("Any", error.instance)
    wanted: Any = error.validator_value
    if rule == "anyOf" and error.context:
        rule, wanted = "type", [e.validator_value for e in error.context if e.validator == "type"]
    if rule == "type":
        return _wrong_type(error.instance, wanted, text)
    if rule == "enum":
        return f"'{text or error.instance}' is not known", did_you_mean(text, map(str, wanted))
    if rule == "required":
        missing = [key for key in wanted if key not in instance]
        return f"missing: {', '.join(missing)}", "Add it."
    if rule == "pattern":
        return f"'{error.instance}' does not fit", f"It must match {wanted}"
    return error.message[:200], "See the schema's description of this key."


def _wrong_type(value: object, rule: object, text: str) -> tuple[str, str]:
    wanted = rule if isinstance(rule, list) else [rule]
    names = " or ".join(_TYPE_NAMES.get(str(w), f"a {w}") for w in wanted)
    if "string" in wanted and isinstance(value, bool | int | float):
        kind = "true or false" if isinstance(value, bool) else f"the number {value}"
        return f"{text} is read as {kind}, {names} is needed", f'Put it in quotes: "{text}"'
    got = _TYPE_NAMES["object"] if isinstance(value, dict) else repr(value)[:60]
    return f"{names} is needed, not {got}", "See 'sifwright list' for examples that work."
