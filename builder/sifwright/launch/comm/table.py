"""The results of check-comm as a short table for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from sifwright.launch.comm.plot import readable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["summary"]

_HEAD = ("operation", "smallest", "median", "largest", "median", "best bus bandwidth", "values")


def summary(document: Mapping[str, Any]) -> Table:
    """Return per operation the smallest latency, the largest time and the best bandwidth."""
    table = Table(box=None, pad_edge=False)
    for number, name in enumerate(_HEAD):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    for name in dict.fromkeys(row["operation"] for row in document["rows"]):
        rows = [row for row in document["rows"] if row["operation"] == name]
        table.add_row(name, *_cells(rows))
    return table


def _cells(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    if "unsupported" in rows[0]:
        return ["not supported by the backend"]
    best = max(rows, key=lambda row: row["bus_bandwidth"])
    ends = (cell for row in (rows[0], rows[-1]) for cell in (readable(row["bytes"]), _time(row)))
    wrong = sum(1 for row in rows if row["wrong_elements"])
    at = f"{best['bus_bandwidth']:.3g} GB/s at {readable(best['bytes'])}"
    return [*ends, at, f"[bold red]wrong at {wrong} sizes[/]" if wrong else "right"]


def _time(row: Mapping[str, Any]) -> str:
    seconds = row["seconds_median"]
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"  # noqa: PLR2004
