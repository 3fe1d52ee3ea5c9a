"""Read YAML strictly: no duplicate keys, aliases or tags, and the line of every value kept.

Built on PyYAML's event stream rather than its object graph: nothing recurses, so a hostile file
can neither overflow the stack nor blow up through aliases, and the text of a scalar (``2.10``,
which YAML reads as the number 2.1) is still there for the message.
"""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml
from yaml import events

from sifwright.errors import Problem, quoted

MAX_BYTES = 1 << 18
MAX_DEPTH = 20
MAX_VALUES = 10_000
# Longer ones take minutes (1:1:1:… is a number to the base 60) or cannot be printed.
MAX_NUMBER = 64
_SCALARS = {
    "tag:yaml.org,2002:null": "construct_yaml_null",
    "tag:yaml.org,2002:bool": "construct_yaml_bool",
    "tag:yaml.org,2002:int": "construct_yaml_int",
    "tag:yaml.org,2002:float": "construct_yaml_float",
}

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

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class _Scalars(yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """PyYAML's own SafeLoader rules for what a plain scalar means, without its object graph."""

    def __init__(self) -> None:
        yaml.constructor.SafeConstructor.__init__(self)
        yaml.resolver.Resolver.__init__(self)

    def value(self, text: str) -> object:
        tag = self.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        if tag not in _SCALARS:
            return text
        if len(text) > MAX_NUMBER:
            raise ValueError("too long")
        return getattr(self, _SCALARS[tag])(yaml.ScalarNode(tag, text))


@dataclass
class _Builder:
    """Turns events into data with a stack of its own."""

    file: str
    scalars: _Scalars = field(default_factory=_Scalars)
    root: Any = None
    stack: list[tuple[Any, Path]] = field(default_factory=list)
    key: list[str | None] = field(default_factory=list)
    lines: dict[Path, int] = field(default_factory=dict)
    texts: dict[Path, str] = field(default_factory=dict)

    def fail(self, event: events.Event, message: str, fix: str) -> YamlProblem:
        return YamlProblem(Problem(where=f"{self.file}:{_line(event)}", what=message, fix=fix))

    def feed(self, event: events.Event) -> None:
        if isinstance(event, events.AliasEvent) or getattr(event, "anchor", None):
            raise self.fail(event, "anchors and aliases are not used here", "Write it out.")
        if isinstance(event, events.ScalarEvent):
            self.scalar(event)
        elif isinstance(event, events.MappingStartEvent | events.SequenceStartEvent):
            self.open(event)
        elif isinstance(event, events.CollectionEndEvent):
            self.stack.pop()
            self.key.pop()

    def open(self, event: events.CollectionStartEvent) -> None:
        if event.tag is not None:
            raise self.fail(event, f"the tag {event.tag[:80]} is not used here", "Remove it.")
        if len(self.stack) >= MAX_DEPTH:
            raise self.fail(event, f"nested deeper than {MAX_DEPTH} levels", "Flatten it.")
        value: Any = {} if isinstance(event, events.MappingStartEvent) else []
        path = self.put(event, value)
        self.stack.append((value, path))
        self.key.append(None)

    def scalar(self, event: events.ScalarEvent) -> None:
        if event.tag is not None:
            raise self.fail(event, f"the tag {event.tag[:80]} is not used here", "Remove it.")
        if self.stack and isinstance(self.stack[-1][0], dict) and self.key[-1] is None:
            self.take_key(event)
            return
        try:
            value = self.scalars.value(event.value) if event.implicit[0] else event.value
        except ValueError as error:
            message = f"{quoted(event.value)} cannot be read as a number"
            raise self.fail(event, message, "Put it in quotes.") from error
        self.texts[self.put(event, value)] = event.value

    def take_key(self, event: events.ScalarEvent) -> None:
        mapping, path = self.stack[-1]
        if not event.value.isprintable():
            raise self.fail(event, "a key must be printable text", "Use a word as the key.")
        if event.value in mapping:
            first = self.lines[(*path, event.value)]
            raise self.fail(
                event,
                f"the key '{event.value}' is given twice",
                f"The first one is in line {first}; keep one of the two.",
            )
        self.key[-1] = event.value

    def put(self, event: events.Event, value: object) -> Path:
        """Put a value where it belongs and return its path."""
        if len(self.lines) >= MAX_VALUES:
            raise self.fail(event, f"more than {MAX_VALUES} values", "Split the file.")
        if not self.stack:
            self.root = value
            path: Path = ()
        else:
            path = self.attach(event, value)
        self.lines[path] = _line(event)
        return path

    def attach(self, event: events.Event, value: object) -> Path:
        parent, path = self.stack[-1]
        if isinstance(parent, list):
            parent.append(value)
            return (*path, len(parent) - 1)
        key = self.key[-1]
        if key is None:
            raise self.fail(event, "a key must be plain text", "Use a word as the key.")
        parent[key] = value
        self.key[-1] = None
        return (*path, key)


def parse_yaml(data: bytes, file: str) -> Document:
    """Read one YAML document; raises `YamlProblem` with file and line."""
    if len(data) > MAX_BYTES:
        raise YamlProblem(
            Problem(where=file, what=f"larger than {MAX_BYTES} bytes", fix="Split the file.")
        )
    builder = _Builder(file)
    try:
        _feed_all(builder, data.decode())
    except UnicodeDecodeError as error:
        raise YamlProblem(
            Problem(where=file, what=f"not UTF-8 text (byte {error.start})", fix="Save as UTF-8.")
        ) from None
    except yaml.YAMLError as error:
        raise YamlProblem(_syntax_problem(error, file)) from None
    return Document(data=builder.root, lines=builder.lines, texts=builder.texts)


def _feed_all(builder: _Builder, text: str) -> None:
    documents = 0
    for event in yaml.parse(text, Loader=_Loader):
        documents += isinstance(event, events.DocumentStartEvent)
        if documents > 1:
            raise builder.fail(event, "more than one YAML document", "Keep the first one.")
        builder.feed(event)


def _line(event: events.Event) -> int:
    """Return the line in which an event starts, from 1; PyYAML counts from 0."""
    return event.start_mark.line + 1 if event.start_mark else 1


def _syntax_problem(error: yaml.YAMLError, file: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    where = f"{file}:{mark.line + 1}" if mark else file
    message = getattr(error, "problem", None) or str(error).splitlines()[0]
    fix = "Check the indentation and quotes."
    return Problem(where=where, what=f"not valid YAML: {message}", fix=fix)
