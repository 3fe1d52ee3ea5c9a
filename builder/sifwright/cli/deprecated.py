"""Old names of commands, options and values: accepted for one release, with a warning."""

import sys
from collections.abc import Sequence

from sifwright.cli import registry

# Each old name, and the words that replace it.
COMMANDS = {
    "labels": "inspect --labels",
    "machine": "host-settings",
    "native": "native-module",
    "venvscript": "venv-hook",
}
_TESTS = {"--tests changed": "--tests untested"}
# For each command: an option alone, or an option with one of its values.
OPTIONS = {
    "build": _TESTS,
    "extend": _TESTS,
    "jobscript": {"--engine native": "--run-in host", "--engine": "--run-in"},
    "shell": {"--at": "--before"},
}


def rename(words: Sequence[str]) -> list[str]:
    """Replace old names on a command line by new ones, and warn of each on standard error."""
    index = registry.position(words)
    before, command, rest = list(words[:index]), words[index : index + 1], list(words[index + 1 :])
    for name in command:
        old, new = name, COMMANDS.get(name, name)
        if old != new:
            _warn(old, new)
        return [*before, *new.split(), *_rename_options(rest, OPTIONS.get(name, {}))]
    return before


def _rename_options(words: list[str], names: dict[str, str]) -> list[str]:
    # Behind `--` are the arguments of the user's own script.
    end = words.index("--") if "--" in words else len(words)
    options = _split_values(words[:end], {old.split()[0] for old in names})
    for old, new in names.items():
        options = _replace(options, old, new)
    return options + words[end:]


def _split_values(words: list[str], names: set[str]) -> list[str]:
    """Write --option=value of these options as two words."""
    split: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        split += [name, value] if equals and name in names else [word]
    return split


def _replace(words: list[str], old: str, new: str) -> list[str]:
    length = len(old.split())
    for index in range(len(words)):
        if words[index : index + length] == old.split():
            _warn(old, new)
            words = [*words[:index], *new.split(), *words[index + length :]]
    return words


def _warn(old: str, new: str) -> None:
    warn(f"'{old}' is now '{new}'; the next release knows the new name only")


def warn(text: str) -> None:
    """Print a warning about an old name on standard error."""
    sys.stderr.write(f"sifwright: warning: {text}\n")
