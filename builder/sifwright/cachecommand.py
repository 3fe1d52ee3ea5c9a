"""The command `cache`: list what steps made and downloaded, check every byte, make room."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sifwright.downloads.cache import open_store
from sifwright.errors import Problem, SifwrightError, TestError, UsageError, quoted
from sifwright.store import faults, pruning
from sifwright.store.store import Store

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from rich.table import Table

    from sifwright.store.store import Bad, Entry

__all__ = ["Report", "run", "size"]

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(?:([KMGT])(IB?|B)?|B?)")
_POWERS = {None: 0, "K": 1, "M": 2, "G": 3, "T": 4}
_UNITS = (("d", 86400), ("h", 3600), ("min", 60))


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What to print of a command: as data, or for a person; and how it failed, if it did."""

    document: dict[str, Any]
    entries: Sequence[Entry] = ()
    summary: str
    error: SifwrightError | None = None

    def table(self) -> Table | None:
        """One line for each entry; in full with --json."""
        return _table(self.entries) if self.entries else None


def run(arguments: Namespace) -> Report:
    """Do what was asked; raises `UsageError` or `MachineError`."""
    _refuse(arguments)
    stores = [Store.open(), open_store()]
    if arguments.action == "prune":
        return _prune(stores, size(arguments.keep_size), dry_run=arguments.dry_run)
    return {"list": _list, "verify": _verify}[arguments.action](stores)


def size(text: str) -> int:
    """Read 4096, 500M, 1.5T (powers of 1000) or 50GiB (of 1024) as bytes."""
    match = _SIZE.fullmatch(text.upper())
    if match is None:
        fix = "Write it as 500M, 50G or 1.5T; or as 50GiB for powers of 1024."
        raise UsageError.of(f"{quoted(text)} is no size", fix=fix)
    base = 1024 if (match[3] or "").startswith("I") else 1000
    return int(Decimal(match[1]) * base ** _POWERS[match[2]])


def _refuse(arguments: Namespace) -> None:
    if arguments.action == "prune":
        if not arguments.keep_size:
            fix = "Say how much may stay: --keep-size 50G."
            raise UsageError.of("cache prune needs --keep-size", fix=fix)
    elif arguments.keep_size or arguments.dry_run:
        fix = "Write: sifwright cache prune --keep-size 50G --dry-run."
        raise UsageError.of("--keep-size and --dry-run go with cache prune only", fix=fix)


def _list(stores: Sequence[Store]) -> Report:
    found = [entry for store in stores for entry in store.entries()]
    entries = sorted(found, key=lambda entry: -entry.used)
    folder = stores[0].root.parent
    return Report(
        document={
            "folder": str(folder),
            "bytes": sum(entry.bytes for entry in entries),
            "steps": [_document(entry) for entry in entries if not _is_download(entry)],
            "downloads": [_document(entry) for entry in entries if _is_download(entry)],
        },
        entries=entries,
        summary=f"{_count(entries)} in {folder}",
    )


def _verify(stores: Sequence[Store]) -> Report:
    counts = [len(store.all_keys()) for store in stores]
    bad = [(store.what, one) for store in stores for one in store.verify()]
    return Report(
        document={
            "bad": [{"kind": kind, "key": one.key, "reason": one.reason} for kind, one in bad]
        },
        summary=f"{_named(*counts)} read, {len(bad)} damaged",
        error=TestError(*(_problem(*one) for one in bad)) if bad else None,
    )


def _prune(stores: Sequence[Store], keep: int, *, dry_run: bool) -> Report:
    with faults.named(stores[0].root):
        pruned = pruning.prune(stores, keep, dry_run=dry_run)
    done = "would be removed" if dry_run else "removed"
    parts = [f"{_count(pruned.removed)} {done}", f"{_decimal(pruned.kept_bytes)} kept"]
    if pruned.in_use:
        parts.append(f"of which in use: {_count(pruned.in_use)}")
    return Report(
        document={
            "dry_run": dry_run,
            "removed": [_document(entry) for entry in pruned.removed],
            "in_use": [_document(entry) for entry in pruned.in_use],
            "kept_bytes": pruned.kept_bytes,
        },
        entries=pruned.removed,
        summary=", ".join(parts),
    )


def _document(entry: Entry) -> dict[str, object]:
    used = datetime.fromtimestamp(entry.used, UTC).isoformat(timespec="seconds")
    names = ("name", "made") if _is_download(entry) else ("layer", "site", "image", "made")
    known = {name: entry.manifest.get(name, "") for name in names}
    return {**known, "bytes": entry.bytes, "used": used, "key": entry.key}


def _is_download(entry: Entry) -> bool:
    return "layer" not in entry.manifest


def _problem(kind: str, bad: Bad) -> Problem:
    again = {"step": "runs the step again", "download": "downloads it again"}[kind]
    fix = f"The next build that needs it drops it and {again}."
    return Problem(where=f"{kind} {bad.key}", what=bad.reason, fix=fix)


def _table(entries: Sequence[Entry]) -> Table:
    from rich.table import Table  # noqa: PLC0415  # not needed for --json
    from rich.text import Text  # noqa: PLC0415

    shown = Table(box=None, pad_edge=False, header_style="")
    for head in ("what", "made for", "size", "age", "last used", "key"):
        shown.add_column(head, no_wrap=True, justify="right" if head == "size" else "left")
    for entry in entries:
        # As text: what stands in a file is no markup.
        shown.add_row(*map(Text, _row(entry)))
    return shown


def _row(entry: Entry) -> tuple[str, ...]:
    facts, now = entry.manifest, time.time()
    made_for = f"{facts.get('site', '')}/{facts.get('image', '')}"
    return (
        str(facts.get("layer") or facts.get("name", "")),
        "any image" if _is_download(entry) else made_for,
        _decimal(entry.bytes),
        _span(now - datetime.fromisoformat(facts["made"]).timestamp()),
        f"{_span(now - entry.used)} ago",
        entry.key[:12],
    )


def _count(entries: Sequence[Entry]) -> str:
    downloads = sum(map(_is_download, entries))
    size = _decimal(sum(entry.bytes for entry in entries))
    return f"{_named(len(entries) - downloads, downloads)} ({size})"


def _named(steps: int, downloads: int) -> str:
    """What there is of the two; no steps if there is nothing."""
    names = [_number(downloads, "download")] if downloads else []
    return " and ".join([_number(steps, "step"), *names] if steps or not downloads else names)


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _decimal(number: int) -> str:
    from rich.filesize import decimal  # noqa: PLC0415  # not needed for --json

    return decimal(number)


def _span(seconds: float) -> str:
    """A time in its largest unit; clocks of other machines may be ahead of ours."""
    for name, length in _UNITS:
        if seconds >= length:
            return f"{seconds / length:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"
