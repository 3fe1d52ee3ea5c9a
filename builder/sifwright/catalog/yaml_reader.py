"""Turn the events of PyYAML into plain data, each checked before anything is made of it."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml import events, nodes

from sifwright.catalog.yaml_document import Path
from sifwright.errors import CatalogError, quoted

MAX_DEPTH = 20
MAX_VALUES = 10_000
# Longer ones take minutes (1:1:1:… is a number to the base 60) or cannot be printed.
MAX_NUMBER = 64
_SCALARS = {f"tag:yaml.org,2002:{name}": name for name in ("null", "bool", "int", "float")}


@dataclass
class Reader:
    """A reader that turns the events of a text into data."""

    file: str
    stream: Iterator[events.Event]
    lines: dict[Path, int] = field(default_factory=dict)
    texts: dict[Path, str] = field(default_factory=dict)
    scalars: Any = field(default_factory=yaml.constructor.SafeConstructor)
    resolver: Any = field(default_factory=yaml.resolver.Resolver)

    def fail(self, event: events.Event, message: str, fix: str) -> CatalogError:
        return CatalogError.of(message, where=f"{self.file}:{_line(event)}", fix=fix)

    def document(self) -> Any:  # noqa: ANN401  # it is YAML
        """Return the value of the only document; None if there is none."""
        next(self.stream)  # of the stream
        if isinstance(next(self.stream), events.StreamEndEvent):
            return None
        value = self.value(next(self.stream), ())
        next(self.stream)
        if not isinstance(more := next(self.stream), events.StreamEndEvent):
            raise self.fail(more, "more than one YAML document", "Keep the first one.")
        return value

    def value(self, event: events.Event, path: Path) -> Any:  # noqa: ANN401  # it is YAML
        """Return the value that begins with the event, and keep its line and text."""
        self.refuse(event)
        if len(self.lines) >= MAX_VALUES:
            raise self.fail(event, f"more than {MAX_VALUES} values", "Split the file.")
        self.lines[path] = _line(event)
        if isinstance(event, events.ScalarEvent):
            self.texts[path] = event.value
            return self.scalar(event)
        if len(path) >= MAX_DEPTH:
            raise self.fail(event, f"nested deeper than {MAX_DEPTH} levels", "Flatten it.")
        if isinstance(event, events.MappingStartEvent):
            return dict(self.items(path))
        items = enumerate(self.until(events.SequenceEndEvent))
        return [self.value(item, (*path, number)) for number, item in items]

    def refuse(self, event: Any) -> None:  # noqa: ANN401  # some have a tag or an anchor
        """Refuse what is not plain data."""
        if event.anchor:  # an alias has one, too
            raise self.fail(event, "anchors and aliases are not used here", "Write it out.")
        if event.tag is not None:
            raise self.fail(event, f"the tag {event.tag[:80]} is not used here", "Remove it.")

    def until(self, end: type[events.Event]) -> Iterator[events.Event]:
        """Yield the events before the end of a collection; the caller takes those inside."""
        for event in self.stream:
            if isinstance(event, end):
                return
            yield event

    def items(self, path: Path) -> Iterator[tuple[str, Any]]:
        seen: dict[str, int] = {}
        for key in self.until(events.MappingEndEvent):
            self.refuse(key)
            if not isinstance(key, events.ScalarEvent):
                raise self.fail(key, "a key must be plain text", "Use a word as the key.")
            name = str(key.value)
            if not name.isprintable():
                raise self.fail(key, "a key must be printable text", "Use a word as the key.")
            if name in seen:
                fix = f"The first one is in line {seen[name]}; keep one of the two."
                raise self.fail(key, f"the key '{name}' is given twice", fix)
            item = next(self.stream)
            seen[name] = _line(item)
            yield name, self.value(item, (*path, name))

    def scalar(self, event: events.ScalarEvent) -> object:
        tag = self.resolver.resolve(nodes.ScalarNode, event.value, event.implicit)
        if tag not in _SCALARS:
            return event.value
        with suppress(ValueError):
            if len(event.value) <= MAX_NUMBER:
                construct = getattr(self.scalars, f"construct_yaml_{_SCALARS[tag]}")
                return construct(nodes.ScalarNode(tag, event.value))
        message = f"{quoted(event.value)} cannot be read as a number"
        raise self.fail(event, message, "Put it in quotes.")


def _line(event: events.Event) -> int:
    """Return the line in which an event starts, from 1; PyYAML counts from 0."""
    return event.start_mark.line + 1 if event.start_mark else 1
