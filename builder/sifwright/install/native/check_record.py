"""Check the record of an installation: a damaged one must not lead out of the prefix."""

from collections.abc import Mapping
from functools import cache
from pathlib import PurePath
from typing import Any

import jsonschema_rs

# The first digits of a plan's id; with a number, the version that replaces a damaged one.
_VERSION = {"type": "string", "pattern": "^[0-9a-f]{12}(-[0-9]+)?$"}
_PATHS = {"type": "array", "items": {"type": "string", "format": "below"}}
_ENTRY = {
    "type": "object",
    "properties": {
        "folder": _VERSION,
        "modulefiles": _PATHS,
        "settings": {"type": "array", "items": {"type": "string", "minLength": 1}},
    },
    "required": ["folder", "modulefiles"],
}
_RECORD = {
    "type": "object",
    "properties": {
        "prefix": {"type": "string"},
        "files": _PATHS,
        "folders": {"type": "array", "items": {"type": "string"}},
        "unfinished": {"type": ["object", "null"], "propertyNames": _VERSION},
        "versions": {
            "type": "object",
            "propertyNames": {"format": "below", "pattern": "^[^/]*$"},
            "additionalProperties": _ENTRY,
        },
    },
    "required": ["prefix", "versions"],
}


def damaged_part(record: Mapping[str, Any]) -> str:
    """Return a key with a value that `install` does not write, with those above it, or ''."""
    try:
        _validator().validate(record)
    except jsonschema_rs.ValidationError as error:
        missing = getattr(error.kind, "property", "prefix")
        return ".".join(map(str, error.instance_path)) or missing
    except UnicodeEncodeError as error:
        # Half of a character: JSON can hold it, and Unicode has none.
        return ascii(error.object)[1:20]
    prefix = PurePath(record["prefix"])
    above = {str(path) for path in (prefix, *prefix.parents)}
    return "" if above.issuperset(record.get("folders", ())) else "folders"


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        _RECORD, formats={"below": _is_below}, validate_formats=True
    )


def _is_below(value: str) -> bool:
    """Return whether it is a path that cannot lead out of its folder."""
    path = PurePath(value)
    is_inside = bool(path.parts) and not path.is_absolute() and ".." not in path.parts
    return is_inside and value.isprintable()
