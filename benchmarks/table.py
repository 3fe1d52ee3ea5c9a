"""Results as a table for a person."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["table"]

_STATES = {True: "[green]reached[/]", False: "[bold red]missed[/]", None: ""}


def table(benchmarks: Mapping[str, Any]) -> Table:
    rows = Table("figure", "median", "goal", "", "of", "medians of the sides", "runs")
    for name, benchmark in benchmarks.items():
        if "skipped" in benchmark:
            rows.add_row(name, "skipped", "", "", benchmark["skipped"])
        for figure in benchmark["figures"]:
            rows.add_row(*_row(figure))
    return rows


def _row(figure: Mapping[str, Any]) -> tuple[str, ...]:
    sides = (f"{name} {statistics.median(row):.4g}" for name, row in figure["sides"].items())
    unit = "" if figure["unit"] == "ratio" else f" {figure['unit']}"
    return (
        figure["name"],
        f"{figure['median']:.4g}{unit}",
        f"≤ {figure['goal']:g}{unit}" if figure["goal"] is not None else "",
        _STATES[figure["reached"]],
        figure["what"],
        " · ".join(sides),
        str(len(figure["samples"])),
    )
