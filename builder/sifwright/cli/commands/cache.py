"""The command `cache`: list what steps made and downloaded, check every byte, make room."""

import re
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from rich.filesize import decimal

from sifwright.cli.options import arguments as shared
from sifwright.cli.options.output import table
from sifwright.errors import Problem, SifwrightError, TestError, UsageError, quoted
from sifwright.make_image.cache import pruning
from sifwright.make_image.cache.store import CacheEntry, DamagedEntry, Store
from sifwright.make_image.downloads.fetch_file import look_store, open_store
from sifwright.system.terminal import print_json, print_line, print_table

HELP = "list, check or prune what builds made and downloaded"
GROUP = "maintain"

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(?:([KMGT])(IB?|B)?|B?)")
_POWERS = {None: 0, "K": 1, "M": 2, "G": 3, "T": 4}
_UNITS = (("d", 86400), ("h", 3600), ("min", 60))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Report:
    """The result of a command: as data, as text, and its error if it failed."""

    document: dict[str, Any]
    entries: Sequence[CacheEntry] = ()
    summary: str
    error: SifwrightError | None = None


ARGUMENTS = (
    shared.argument("action", choices=("list", "verify", "prune"), help="what to do"),
    shared.text("--keep-size", "SIZE", "prune: size to keep, as 50G, 500M, 1.5T"),
    shared.switch("--dry-run", "prune: list, and remove nothing"),
    shared.JSON,
)


def run(arguments: Namespace) -> None:
    """Do the action and print its report; raises `TestError` for damaged entries."""
    report = _report(arguments)
    if arguments.json:
        print_json(report.document)
    else:
        if report.entries:
            heads = ("what", "made for", "size", "age", "last used", "key")
            print_table(table(heads, map(_row, report.entries), right=("size",)))
        print_line(report.summary)
    if report.error:
        raise report.error


def _report(arguments: Namespace) -> _Report:
    _refuse(arguments)
    if arguments.action == "prune":
        stores = [Store.open(), open_store()]
        return _prune(stores, size(arguments.keep_size), dry_run=arguments.dry_run)
    return {"list": _list, "verify": _verify}[arguments.action]([Store.look(), look_store()])


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


def _list(stores: Sequence[Store]) -> _Report:
    entries = [entry for store in stores for entry in store.entries()]
    entries = sorted(entries, key=lambda entry: -entry.used)
    folder = stores[0].root.parent
    return _Report(
        document={
            "folder": str(folder),
            "bytes": sum(entry.bytes for entry in entries),
            "steps": [_document(entry) for entry in entries if not _is_download(entry)],
            "downloads": [_document(entry) for entry in entries if _is_download(entry)],
        },
        entries=entries,
        summary=f"{_count(entries)} in {folder}",
    )


def _verify(stores: Sequence[Store]) -> _Report:
    counts = [len(store.all_keys()) for store in stores]
    bad = [(store.noun, damaged) for store in stores for damaged in store.verify()]
    return _Report(
        document={
            "bad": [
                {"kind": kind, "key": damaged.key, "reason": damaged.reason}
                for kind, damaged in bad
            ]
        },
        summary=f"{_named(*counts)} read, {len(bad)} damaged",
        error=TestError(*(_problem(*kind_and_entry) for kind_and_entry in bad)) if bad else None,
    )


def _prune(stores: Sequence[Store], keep: int, *, dry_run: bool) -> _Report:
    pruned = pruning.prune(stores, keep, dry_run=dry_run)
    done = "would be removed" if dry_run else "removed"
    parts = [f"{_count(pruned.removed)} {done}", f"{decimal(pruned.kept_bytes)} kept"]
    if pruned.in_use:
        parts.append(f"of which in use: {_count(pruned.in_use)}")
    return _Report(
        document={
            "dry_run": dry_run,
            "removed": [_document(entry) for entry in pruned.removed],
            "in_use": [_document(entry) for entry in pruned.in_use],
            "kept_bytes": pruned.kept_bytes,
        },
        entries=pruned.removed,
        summary=", ".join(parts),
    )


def _document(entry: CacheEntry) -> dict[str, object]:
    used = datetime.fromtimestamp(entry.used, UTC).isoformat(timespec="seconds")
    names = ("name", "made") if _is_download(entry) else ("layer", "site", "image", "made")
    known = {name: entry.manifest.get(name, "") for name in names}
    return {**known, "bytes": entry.bytes, "used": used, "key": entry.key}


def _is_download(entry: CacheEntry) -> bool:
    return "layer" not in entry.manifest


def _problem(kind: str, bad: DamagedEntry) -> Problem:
    again = {"step": "runs the step again", "download": "downloads it again"}[kind]
    fix = (
        f"The next build that needs it drops it and {again}; 'sifwright cache prune --keep-size 0'"
        " removes all results."
    )
    return Problem(where=f"{kind} {bad.key}", what=bad.reason, fix=fix)


def _row(entry: CacheEntry) -> tuple[str, ...]:
    facts, now = entry.manifest, time.time()
    made_for = f"{facts.get('site', '')}/{facts.get('image', '')}"
    return (
        str(facts.get("layer") or facts.get("name", "")),
        "any image" if _is_download(entry) else made_for,
        decimal(entry.bytes),
        _span(now - datetime.fromisoformat(facts["made"]).timestamp()),
        f"{_span(now - entry.used)} ago",
        entry.key[:12],
    )


def _count(entries: Sequence[CacheEntry]) -> str:
    downloads = sum(map(_is_download, entries))
    size = decimal(sum(entry.bytes for entry in entries))
    return f"{_named(len(entries) - downloads, downloads)} ({size})"


def _named(steps: int, downloads: int) -> str:
    """Name the numbers of steps and downloads; none of steps if there is nothing."""
    names = [_number(downloads, "download")] if downloads else []
    return " and ".join([_number(steps, "step"), *names] if steps or not downloads else names)


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _span(seconds: float) -> str:
    """Return a time in its largest unit; clocks of other machines may be ahead of ours."""
    for name, length in _UNITS:
        if seconds >= length:
            return f"{seconds / length:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"
