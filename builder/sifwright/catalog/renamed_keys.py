"""Old keys of files below `defs/`: accepted for one release, with a warning that names the new key.

A file that has both names keeps the old one, which its schema then refuses as unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from sifwright.catalog.yaml_file import Document, Path


@dataclass(frozen=True, slots=True)
class RenamedKey:
    """The path of an old key, in which `*` is any key or index, and the key that replaces it."""

    path: tuple[str, ...]
    new: str
    values: Mapping[str, str] = field(default_factory=dict)

    def matches(self, path: Path) -> bool:
        pairs = zip(path, self.path, strict=False)
        return len(path) == len(self.path) and all(want in ("*", key) for key, want in pairs)


# For each kind of file. `values` are old words in the list below a key.
RENAMED = {
    "layer": (
        RenamedKey(("options", "*", "needed"), "required-at"),
        RenamedKey(("bootstrap", "*", "part"), "image-part"),
        RenamedKey(("inspects", "holds"), "must-match"),
    ),
    "image": (RenamedKey(("layers", "*", "unless"), "skip-if-provided"),),
    "site": (
        RenamedKey(("engines",), "run-in", {"native": "host"}),
        RenamedKey(("modules", "native"), "host"),
    ),
}


def rename_keys(document: Document, kind: str, file: str) -> tuple[Document, list[str]]:
    """Return the document with new keys, and a warning for each old one."""
    warnings = []
    for renamed in RENAMED.get(kind, ()):
        for path in [path for path in document.lines if renamed.matches(path)]:
            parent = _value_at(document.data, path[:-1])
            if renamed.new not in parent:
                warnings.append(_warning(f"{file}:{document.lines[path]}", path, renamed))
                parent[renamed.new] = _rename_words(parent.pop(path[-1]), renamed.values)
                document = _move(document, path, (*path[:-1], renamed.new))
    return document, warnings


def _value_at(data: object, path: Path) -> dict[str | int, object]:
    value = cast("Any", data)
    for key in path:
        value = value[key]
    return cast("dict[str | int, object]", value)


def _rename_words(value: object, names: Mapping[str, str]) -> object:
    if not isinstance(value, list):
        return value
    return [names.get(word, word) if isinstance(word, str) else word for word in value]


def _move(document: Document, old: Path, new: Path) -> Document:
    """Return the document with the lines and texts of a value below its new path."""

    def moved(by_path: dict[Path, Any]) -> dict[Path, Any]:
        length = len(old)
        return {
            new + path[length:] if path[:length] == old else path: value
            for path, value in by_path.items()
        }

    return replace(document, lines=moved(document.lines), texts=moved(document.texts))


def _warning(where: str, path: Path, renamed: RenamedKey) -> str:
    words = [f"'{old}' is now '{new}'" for old, new in renamed.values.items()]
    names = ", ".join([f"'{path[-1]}' is now '{renamed.new}'", *words])
    return f"{where}: {names}; the next release knows the new name only"
