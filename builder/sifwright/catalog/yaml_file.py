"""Read YAML strictly: no duplicate keys, aliases or tags, and the line of every value kept.

The events of PyYAML are checked first. So a hostile file can neither overflow the stack nor blow up
through aliases. The text of a scalar (``2.10``, which YAML reads as the number 2.1) is
still there for the message.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml
from yaml import events, nodes

from sifwright.errors import Problem, quoted

MAX_BYTES = 1 << 18
MAX_DEPTH = 20
MAX_VALUES = 10_000
# Longer ones take minutes (1:1:1:… is a number to the base 60) or cannot be printed.
MAX_NUMBER = 64
_SCALARS = {f"tag:yaml.org,2002:{name}": name for name in ("null", "bool", "int", "float")}

Path: TypeAlias = tuple[str | int, ...]
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """Plain data, and for each path in it the line (from 1) and the text as written."""

    data: Any
    lines: dict[Path, int]
    texts: dict[Path, str]


class YamlProblem(Exception):
    """The file cannot be read as one plain YAML document."""

    def __init__(self, where: str, message: str, fix: str) -> None:
        self.problem = Problem(where=where, what=message, fix=fix)
        super().__init__(str(self.problem))


@dataclass
class _Reader:
    """Turns nodes into data."""

    file: str
    lines: dict[Path, int] = field(default_factory=dict)
    texts: dict[Path, str] = field(default_factory=dict)
    scalars: Any = field(default_factory=yaml.constructor.SafeConstructor)

    def fail(self, thing: Any, message: str, fix: str) -> YamlProblem:  # noqa: ANN401  # node or event
        return YamlProblem(f"{self.file}:{_line(thing)}", message, fix)

    def value(self, node: nodes.Node, path: Path) -> Any:  # noqa: ANN401  # it is YAML
        """Return the value of a node, and keep its line and text."""
        if len(self.lines) >= MAX_VALUES:
            raise self.fail(node, f"more than {MAX_VALUES} values", "Split the file.")
        self.lines[path] = _line(node)
        if isinstance(node, nodes.SequenceNode):
            return [self.value(item, (*path, n)) for n, item in enumerate(node.value)]
        if isinstance(node, nodes.MappingNode):
            return dict(self.items(node, path))
        self.texts[path] = node.value
        return self.scalar(node)

    def items(self, node: nodes.MappingNode, path: Path) -> Iterator[tuple[str, Any]]:
        seen: dict[str, int] = {}
        for key, item in node.value:
            if not isinstance(key, nodes.ScalarNode):
                raise self.fail(key, "a key must be plain text", "Use a word as the key.")
            name = str(key.value)
            if not name.isprintable():
                raise self.fail(key, "a key must be printable text", "Use a word as the key.")
            if name in seen:
                fix = f"The first one is in line {seen[name]}; keep one of the two."
                raise self.fail(key, f"the key '{name}' is given twice", fix)
            seen[name] = _line(item)
            yield name, self.value(item, (*path, name))

    def scalar(self, node: nodes.Node) -> object:
        if node.tag not in _SCALARS:
            return node.value
        with suppress(ValueError):
            if len(node.value) <= MAX_NUMBER:
                return getattr(self.scalars, f"construct_yaml_{_SCALARS[node.tag]}")(node)
        message = f"{quoted(node.value)} cannot be read as a number"
        raise self.fail(node, message, "Put it in quotes.")


def parse_yaml(data: bytes, file: str) -> Document:
    """Read one YAML document; raises `YamlProblem` with file and line."""
    if len(data) > MAX_BYTES:
        raise YamlProblem(file, f"larger than {MAX_BYTES} bytes", "Split the file.")
    reader = _Reader(file)
    try:
        text = data.decode()
        _refuse(text, reader)
        node = yaml.compose(text, Loader=_Loader)
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text (byte {error.start})"
        raise YamlProblem(file, message, "Save as UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark else file
        message = getattr(error, "problem", None) or str(error).splitlines()[0]
        fix = "Check the indentation and quotes."
        raise YamlProblem(where, f"not valid YAML: {message}", fix) from None
    value = None if node is None else reader.value(node, ())
    return Document(data=value, lines=reader.lines, texts=reader.texts)


def _refuse(text: str, reader: _Reader) -> None:
    """Refuse what is not plain data, before anything is made of it."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=_Loader):
        tag = getattr(event, "tag", None)
        documents += isinstance(event, events.DocumentStartEvent)
        depth += isinstance(event, events.CollectionStartEvent)
        depth -= isinstance(event, events.CollectionEndEvent)
        if isinstance(event, events.AliasEvent) or getattr(event, "anchor", None):
            raise reader.fail(event, "anchors and aliases are not used here", "Write it out.")
        if tag is not None:
            raise reader.fail(event, f"the tag {tag[:80]} is not used here", "Remove it.")
        if depth > MAX_DEPTH:
            raise reader.fail(event, f"nested deeper than {MAX_DEPTH} levels", "Flatten it.")
        if documents > 1:
            raise reader.fail(event, "more than one YAML document", "Keep the first one.")


def _line(thing: Any) -> int:  # noqa: ANN401  # a node or an event
    """Return the line in which an event or a node starts, from 1; PyYAML counts from 0."""
    return thing.start_mark.line + 1 if thing.start_mark else 1
