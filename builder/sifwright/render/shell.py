"""Write values and files into POSIX shell so that they come out as they went in."""

import base64
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from sifwright.catalog.model import EnvRule, Value
from sifwright.catalog.options import variable
from sifwright.catalog.script_rules import DELIMITER, HAZARDS
from sifwright.plan.model import StepSource

_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
# The line of a rule by its action.
_EXPORTS = {
    "prepend": 'export {name}={value}"${{{name}:+:${name}}}"',
    "append": 'export {name}="${{{name}:+${name}:}}"{value}',
    "default": '[ -n "${{{name}+set}}" ] || export {name}={value}',
    "set": "export {name}={value}",
}


def assignments(options: Mapping[str, Value]) -> Iterator[str]:
    """Yield an `OPT_NAME=value` word for `env` of each option, its value quoted as data."""
    for name, value in options.items():
        yield f"{variable(name)}={shlex.quote(value.text)}"


def sources(items: Iterable[StepSource]) -> Iterator[str]:
    """Yield a `SOURCE_NAME=` word of each source for the program fetch-source; `-` is unknown."""
    for item in items:
        name, _, text = source(item).partition("=")
        yield f"{name}={shlex.quote(text)}"


def source(item: StepSource) -> str:
    """Return the word of one source, without quotes."""
    is_git = item.kind == "git"
    words = [item.kind, item.url, item.ref if is_git else item.version, item.digest or "-"]
    words += [f"submodules={str(item.submodules).lower()}"] if is_git else []
    return f"SOURCE_{item.name.upper().replace('-', '_')}={' '.join(words)}"


def export(rule: EnvRule) -> str:
    """Return the line that applies a layer's environment rule."""
    return _EXPORTS[rule.action].format(name=rule.name, value=shlex.quote(rule.value))


def quote(value: str) -> str:
    """Return any value as one word of bash on one line."""
    if value.isprintable():
        return shlex.quote(value)
    return f"$'{''.join(map(_escaped, value))}'"


def _escaped(character: str) -> str:
    if character.isprintable() and character not in "'\\":
        return character
    # Quote bytes, so that the text is the same in every locale, and bytes outside of UTF-8 stay.
    return "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogateescape"))


def path(value: str) -> str:
    """Quote a path of a site's facts; an unset or empty `$NAME` ends the job."""
    checked = _VARIABLE.sub(r"${\1:?}", value)
    return f'"{checked}"'


def variables(value: str) -> list[str]:
    """Return the names of the variables in a path of a site's facts."""
    return _VARIABLE.findall(value)


def make_folders(paths: Iterable[str]) -> str:
    return f"mkdir -p {' '.join(shlex.quote(path) for path in sorted(paths))}"


def write_file(path: str, data: bytes, *, executable: bool = False, append: bool = False) -> str:
    """Return commands that write a file; as plain text if the definition file can carry it."""
    target = shlex.quote(path)
    text = _plain_text(data)
    program = "cat" if text is not None else "base64 -d"
    body = text if text is not None else base64.encodebytes(data).decode()
    mode = "" if append else f"chmod {'755' if executable else '644'} {target}\n"
    command = f"{program} {'>>' if append else '>'}{target}"
    return f"{command} <<'{DELIMITER}'\n{body}{DELIMITER}\n{mode}"


def _plain_text(data: bytes) -> str | None:
    """Return the text, unless a here-document in a definition file would change it."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    is_whole = not text or text.endswith("\n")
    is_changed = any(pattern.search(text) for pattern, _, _ in HAZARDS)
    return text if is_whole and not is_changed else None
