"""Render a module: as a modulefile in Lua or Tcl, and as an easyconfig with both in it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sifwright.templating import refuse_controls, template

if TYPE_CHECKING:
    from sifwright.installation.facts import ImageFacts
    from sifwright.installation.model import Module

__all__ = ["OURS", "Easyconfig", "Syntax", "easyconfig", "modulefile"]

Syntax = Literal["lua", "tcl"]
# In an installation, all that is not the user's.
OURS = ("bin", "runscripts", "share", "*.sif")
# What EasyBuild's style check allows is 120.
_WIDTH = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Easyconfig:
    """What an easyconfig says beside its module; `sif_sha256` is empty for a central image.

    `links` are symbolic links of the installation: path and target.
    """

    module: Module
    facts: ImageFacts
    links: tuple[tuple[str, str], ...]
    archive: str
    archive_sha256: str
    sif_sha256: str


def modulefile(module: Module, root: str, syntax: Syntax) -> str:
    """A modulefile for the installation in `root`, without EasyBuild."""
    return template(f"module/modulefile.{syntax}.j2", *_FILTERS).render(module=module, root=root)


def easyconfig(config: Easyconfig) -> str:
    """The text of the .eb file."""
    values = {name: getattr(config, name) for name in Easyconfig.__dataclass_fields__}
    return template("module/easyconfig.eb.j2", *_FILTERS).render(
        **values, stem=config.facts.stem, ours=" ".join(OURS)
    )


def _python(value: str) -> str:
    refuse_controls(value)
    return repr(value)


def _words(line: str) -> str:
    """A long line as strings that follow one another, in parentheses: E501 of pycodestyle."""
    pieces = textwrap.wrap(line, _WIDTH, drop_whitespace=False, break_on_hyphens=False)
    return "\n    ".join(map(repr, pieces))


def _inside(text: str) -> str:
    """As it stands between three quotes in an easyconfig."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').strip("\n")


def _long_text(line: str) -> str:
    """A line in Lua's long brackets."""
    return line.replace("]==]", "]= =]")


_FILTERS = (("py", _python), ("words", _words), ("inside", _inside), ("text", _long_text))
