"""Templates of the package that write shell, Lua, Tcl or Python: nothing is escaped by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from sifwright.errors import UsageError, quoted
from sifwright.render import shell

if TYPE_CHECKING:
    import jinja2

_TCL = re.compile(r'([\\"$\[\]{}])')


@cache
def template(name: str, *filters: tuple[str, Callable[..., object]]) -> jinja2.Template:
    """Return a template by its path in this package; an undefined name in it is an error.

    Its filters quote a value: `sh` as a word of shell, `path` as a path with variables. `lua` and
    `tcl` quote a string of these languages. `filters` are further ones.
    """
    import jinja2  # noqa: PLC0415  # a build with nothing to do renders nothing

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sifwright", ""),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  # no HTML; each value goes through a filter
    )
    environment.filters |= {"sh": shell.quote, "path": shell.path, "lua": _lua, "tcl": _tcl}
    environment.filters |= dict(filters)
    return environment.get_template(name)


def _lua(value: str) -> str:
    """Quote for Lua, which has JSON's escapes for line breaks and printable characters."""
    refuse_controls(value.replace("\n", ""))
    return json.dumps(value, ensure_ascii=False)


def _tcl(value: str) -> str:
    refuse_controls(value)
    return '"' + _TCL.sub(r"\\\1", value) + '"'


def long_text(line: str) -> str:
    """Return a line as it stands in Lua's long brackets."""
    return line.replace("]==]", "]= =]")


def refuse_controls(value: str) -> None:
    """Raise `UsageError` for what would break a line, or cannot be seen in it."""
    if not value.isprintable():
        message = f"{quoted(value)} cannot stand in a module"
        raise UsageError.of(message, fix="Choose a path of printable characters.")
