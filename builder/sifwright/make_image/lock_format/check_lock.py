"""Checks of a lock that another user may have written, before its names become paths."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

_DIGEST = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# A name of a file in one folder.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+~!%-]*")
# A processor, or a suite or component of an archive: folders below another one.
_FOLDERS = re.compile(rf"{_PLAIN.pattern}(?:/{_PLAIN.pattern})*")
_TYPES: Mapping[str, type] = {
    "epoch": int,
    **dict.fromkeys(("base", "layers", "tools", "facts"), dict),
}


def check_types(facts: Mapping[str, Any]) -> None:
    """Raise `TypeError` for a simple fact of a lock that is no text, number or table of texts."""
    for name, value in facts.items():
        texts = value.values() if isinstance(value, dict) else ()
        is_right = isinstance(value, _TYPES.get(name, str))
        if not is_right or not all(isinstance(text, str) for text in texts):
            raise TypeError(f"{name} is {value!r}")


def check_files(files: Iterable[tuple[str, str]]) -> None:
    """Raise `ValueError` for a name that leads out of its folder, or a sha256 that is none."""
    for name, sha256 in files:
        if not (_PLAIN.fullmatch(name) and _DIGEST.fullmatch(sha256)):
            raise ValueError(f"the file {name!r} has the sha256 {sha256!r}")


def check_folders(names: Iterable[str]) -> None:
    """Raise `ValueError` for a processor, suite or component that leads out of its folder."""
    for name in names:
        if not _FOLDERS.fullmatch(name):
            raise ValueError(f"{name!r} is no processor, suite or component")


def check_facts(facts: Mapping[str, str]) -> None:
    """Raise `ValueError` for facts of a base image that do not say where they come from."""
    if facts and not ("origin" in facts and facts.get("disk-mb", "").isdecimal()):
        raise ValueError(f"the facts of the base image are {dict(facts)}")


def check_date(date: str) -> None:
    """Raise `ValueError` for a date of an archive that is none; it may be empty."""
    if date:
        datetime.fromisoformat(date)


def check_source(kind: str, name: str, digest: str) -> None:
    """Raise `ValueError` for a commit or a sha256 that is none."""
    pattern = _COMMIT if kind == "git" else _DIGEST
    if not pattern.fullmatch(digest):
        raise ValueError(f"source {name} has the digest {digest!r}")


def check_base(base: Mapping[str, str]) -> None:
    """Raise `ValueError` for an image of a registry without a digest, or one that is none."""
    digest = base.get("digest", "")
    if base["bootstrap"] == "docker" and not digest:
        raise ValueError("the base image has no digest")
    if digest and not _DIGEST.fullmatch(digest.removeprefix("sha256:")):
        raise ValueError(f"the base image has the digest {digest!r}")
