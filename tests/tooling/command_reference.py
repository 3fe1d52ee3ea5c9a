"""Print the parser as a page of Markdown: docs/reference/commands.md, written by 'make docs'."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator

from sifwright.cli import registry
from sifwright.cli.main import parser

_HEAD = """\
# Commands

`make docs` writes this page from the parser. `sifwright COMMAND --help` prints the same.
"""
_WIDTH = 104


def page() -> str:
    """Return the whole page."""
    top = parser()
    commands = _commands(top)
    parts = [_HEAD, *_groups(), *_options(top), f"```\n{top.epilog}```\n"]
    helps = {choice.dest: choice.help or "" for choice in commands._get_subactions()}  # noqa: SLF001
    for name, command in commands.choices.items():
        parts += [f"## {name}\n\n{_wrapped(_sentence(helps[name]))}", *_options(command)]
    return "\n".join(parts)


def _groups() -> Iterator[str]:
    """Yield a list of links to the commands of each group."""
    for group, title in registry.GROUPS.items():
        names = [name for name in registry.names() if group == registry.load(name).GROUP]
        yield _wrapped(f"- {title}: {', '.join(f'[{name}](#{name})' for name in names)}", "  ")[:-1]
    yield ""


def _commands(top: argparse.ArgumentParser) -> argparse._SubParsersAction[argparse.ArgumentParser]:
    actions = top._actions  # noqa: SLF001  # argparse has no public way to list them
    return next(action for action in actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001


def _options(command: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the list of arguments, after the line of usage."""
    hidden = (argparse._HelpAction, argparse._SubParsersAction)  # noqa: SLF001
    shown = [each for each in command._actions if not isinstance(each, hidden)]  # noqa: SLF001
    words = " ".join(_name(each) for each in shown if not each.option_strings)
    required = " ".join(_name(each) for each in shown if each.option_strings and each.required)
    usage = " ".join(filter(None, (command.prog.split(" SITE")[0], words, required, "[OPTION…]")))
    yield f"```\n{usage}\n```\n"
    texts = ((_name(each), (each.help or "").replace("%%", "%")) for each in shown)
    items = [_wrapped(f"- `{name}`: {text}", "  ") for name, text in texts]
    yield "".join(items)


def _name(action: argparse.Action) -> str:
    """Return the argument as a user writes it."""
    value = action.metavar if isinstance(action.metavar, str) else None
    if action.choices is not None and value is None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        return f"[{value}]" if action.nargs == "?" else f"{value or action.dest}"
    if action.nargs == 0:
        return action.option_strings[-1]
    value = value or action.dest.upper()
    shown = f"[{value}]" if action.nargs == "?" else value
    return f"{action.option_strings[-1]} {shown}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, _WIDTH, subsequent_indent=indent, break_on_hyphens=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
