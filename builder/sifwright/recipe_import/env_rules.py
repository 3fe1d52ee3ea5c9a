"""ENV and %environment as rules of a layer's header."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from sifwright.catalog.model import EnvRule
from sifwright.catalog.script_rules import refuse_text
from sifwright.errors import UsageError
from sifwright.recipe_import import shell_words
from sifwright.recipe_import.shell_words import Lookup

# Variables that Apptainer's shell keeps for itself when it makes the environment (tried on 1.4.5).
ENGINES_OWN = {"UID", "EUID", "GID"}
ONLY_STEPS = "only the recipe's RUNs see it; Apptainer keeps that name for itself"
# Variables that no shell takes from its environment: it would end, or become another one.
_SHELLS_OWN = {"BASHOPTS", "BASH_VERSINFO", "PPID", "SHELLOPTS"}

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELL = re.compile(r"[`;&|<>()*?]|\$\(")


def pairs(text: str) -> list[tuple[str, str]]:
    """Return names and raw values of an ENV or ARG: NAME=VALUE …, or the older NAME VALUE."""
    words = shell_words.split(text)
    if words and "=" not in words[0]:
        name, _, value = text.partition(" ")
        if not value.strip():
            raise shell_words.WordError(f"{name} has no value")
        return [(name, value.strip())]
    for word in words:
        if "=" not in word:
            raise shell_words.WordError(f"'{word}' is not NAME=VALUE")
    return [(name, value) for name, _, value in (word.partition("=") for word in words)]


def argument_words(text: str) -> tuple[list[str], str]:
    """Split an ARG; words after '#' are names to Docker, and need a value.

    Names without a value are left out; the text behind '#' is returned for a note.
    """
    comment, remark = shell_words.remark(text)
    return shell_words.split(comment) + [word for word in remark.split() if "=" in word], remark


def assignments(
    line: str, env: dict[str, str | None], exported: set[str], known: Lookup, base: Lookup
) -> list[EnvRule]:
    """Return the rules of a line of %environment; `env` and `exported` come from earlier lines.

    `known` gives the values of `env`.
    """
    bare = re.sub(r"""'[^']*'|"(?:[^"`$\\]|\$(?!\())*\"""", "", line).rstrip(";")
    if _SHELL.search(re.sub(r"\$\{[^}]*\}", "", bare)):
        raise shell_words.WordError(f"'{line}' is more than an assignment")
    words = shell_words.split(re.sub(r"\s#.*$", "", line).rstrip("; "))
    exports = words[:1] == ["export"]
    result: list[EnvRule] = []
    for word in words[exports:]:
        name, given, raw = word.partition("=")
        if given:
            _refuse_raw(raw)
            result += rules(name, raw, known, base)
        elif not _NAME.fullmatch(name) or name not in env:
            raise shell_words.WordError(f"'{line}' is more than an assignment")
        exported |= {name} if exports else set()
        env |= {rule.name: rule.value if rule.action == "set" else None for rule in result}
    return result


def _refuse_raw(raw: str) -> None:
    """Refuse values that Apptainer's own shell reads in another way than sh (tried)."""
    bare = re.sub(r"""'[^']*'|"(?:\\.|[^"\\])*\"""", "", raw)
    if raw.startswith("~") or "\\" in bare:
        raise shell_words.WordError(f"'{raw}': a backslash or '~' outside quotes")


def carried(rules: Iterable[EnvRule]) -> tuple[EnvRule, ...]:
    """Return the rules that an image can have."""
    return tuple(rule for rule in rules if rule.name not in ENGINES_OWN)


def code(rule: EnvRule) -> str:
    """Return the line of install.sh that applies a rule for RUN (templates/recipe.sh)."""
    return f"variable {rule.name} {rule.action} {shlex.quote(rule.value)}"


def base_code(taken: Mapping[str, str]) -> list[str]:
    """Return the lines of install.sh that compare the base image with what was taken from it."""
    return [f"base_variable {name} {shlex.quote(value)}" for name, value in taken.items()]


def rules(name: str, raw: str, known: Lookup, base: Lookup) -> list[EnvRule]:
    """Return the rules of a value; one with its own variable is prepended or appended.

    `known` gives the values of the recipe, `base` those of the base image.
    """

    def lookup(other: str) -> str | None:
        value = known(other)
        return base(other) if value is None else value

    if not _NAME.fullmatch(name):
        raise shell_words.WordError(f"'{name}' is not the name of a variable")
    if name in _SHELLS_OWN:
        raise shell_words.WordError(
            f"'{name}' is a name that bash, which runs the steps, keeps for itself"
        )
    before, after = _around_itself(name, raw, known)
    if before is None and after is None:
        return [_rule(name, "set", shell_words.expand(raw, lookup))]
    result = []
    if before:
        result.append(_rule(name, "prepend", shell_words.expand(before, lookup)))
    if after:
        result.append(_rule(name, "append", shell_words.expand(after, lookup)))
    return result


def _rule(name: str, action: Literal["set", "prepend", "append"], value: str) -> EnvRule:
    if problem := refuse_text(value):
        raise shell_words.WordError(f"{name}: {problem.what}")
    return EnvRule(name=name, action=action, value=value)


def _around_itself(name: str, raw: str, known: Lookup) -> tuple[str | None, str | None]:
    """Return the text before and after the variable's own value, if that is not known."""
    if name not in shell_words.named(raw) or known(name) is not None:
        return None, None
    text = raw[1:-1] if re.fullmatch(r'"[^"]*"', raw) else raw
    own = rf"\$(?:{name}|\{{{name}\}})(?![A-Za-z0-9_])"
    match = re.fullmatch(rf"(?:(?P<a>[^:].*?):)?{own}(?::(?P<b>.+))?", text)
    match = match or re.fullmatch(rf"(?P<a>.+?)\$\{{{name}:\+:{own}\}}(?P<b>)", text)
    match = match or re.fullmatch(rf"(?P<a>)\$\{{{name}:\+{own}:\}}(?P<b>.+)", text)
    if match is None or name in shell_words.named(f"{match['a']} {match['b']}"):
        return None, None
    return match["a"] or "", match["b"] or ""


def merged(old: EnvRule | None, new: EnvRule) -> EnvRule | None:
    """Return two rules of one variable as one; None if that takes two headers.

    Raises `UsageError` for a value that is too long.
    """
    if old is None or new.action == "set":
        return new
    if old.action not in {new.action, "set"}:
        return None
    first, second = (new, old) if new.action == "prepend" else (old, new)
    value = f"{first.value}:{second.value}" if old.value else new.value
    if problem := refuse_text(value):
        raise UsageError(replace(problem, where=new.name))
    return EnvRule(name=new.name, action=old.action, value=value)
