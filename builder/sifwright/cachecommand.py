"""The command `cache`: list what steps made, check every byte of it, make room."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sifwright.errors import Problem, SifwrightError, TestError, UsageError, quoted
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
        """One line for each step; in full with --json."""
        return _table(self.entries) if self.entries else None


def run(arguments: Namespace) -> Report:
    """Do what was asked; raises `UsageError` or `MachineError`."""
    _refuse(arguments)
    if arguments.action == "prune":
        return _prune(Store.open(), size(arguments.keep_size), dry_run=arguments.dry_run)
    return {"list": _list, "verify": _verify}[arguments.action](Store.open())


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


def _list(store: Store) -> Report:
    entries = store.entries()
    total = sum(entry.bytes for entry in entries)
    return Report(
        document={
            "folder": str(store.root),
            "bytes": total,
            "steps": [_document(entry) for entry in entries],
        },
        entries=entries,
        summary=f"{_count(entries)} in {store.root}",
    )


def _verify(store: Store) -> Report:
    count, bad = len(store.all_keys()), store.verify()
    return Report(
        document={"bad": [{"key": one.key, "reason": one.reason} for one in bad]},
        summary=f"{_steps(count)} read, {len(bad)} damaged",
        error=TestError(*map(_problem, bad)) if bad else None,
    )


def _prune(store: Store, keep: int, *, dry_run: bool) -> Report:
    pruned = store.prune(keep, dry_run=dry_run)
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
    known = {name: entry.manifest.get(name, "") for name in ("layer", "site", "image", "made")}
    return {**known, "bytes": entry.bytes, "used": used, "key": entry.key}


def _problem(bad: Bad) -> Problem:
    fix = "The next build that needs this step drops it and runs the step again."
    return Problem(where=f"step {bad.key}", what=bad.reason, fix=fix)


def _table(entries: Sequence[Entry]) -> Table:
    from rich.table import Table  # noqa: PLC0415  # not needed for --json
    from rich.text import Text  # noqa: PLC0415

    shown = Table(box=None, pad_edge=False, header_style="")
    for head in ("layer", "made for", "size", "age", "last used", "key"):
        shown.add_column(head, no_wrap=True, justify="right" if head == "size" else "left")
    for entry in entries:
        # As text: what stands in a file is no markup.
        shown.add_row(*map(Text, _row(entry)))
    return shown


def _row(entry: Entry) -> tuple[str, ...]:
    facts, now = entry.manifest, time.time()
    return (
        str(facts.get("layer", "")),
        f"{facts.get('site', '')}/{facts.get('image', '')}",
        _decimal(entry.bytes),
        _span(now - datetime.fromisoformat(facts["made"]).timestamp()),
        f"{_span(now - entry.used)} ago",
        entry.key[:12],
    )


def _count(entries: Sequence[Entry]) -> str:
    return f"{_steps(len(entries))} ({_decimal(sum(entry.bytes for entry in entries))})"


def _steps(number: int) -> str:
    return "1 step" if number == 1 else f"{number} steps"


def _decimal(number: int) -> str:
    from rich.filesize import decimal  # noqa: PLC0415  # not needed for --json

    return decimal(number)


def _span(seconds: float) -> str:
    """A time in its largest unit; clocks of other machines may be ahead of ours."""
    for name, length in _UNITS:
        if seconds >= length:
            return f"{seconds / length:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"
