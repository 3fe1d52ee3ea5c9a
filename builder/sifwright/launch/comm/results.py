"""The results of check-comm: a picture of bandwidth and time over size, and a short table."""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

SUFFIXES = ("png", "svg")
# Okabe and Ito's colours, told apart by colour-blind readers too.
_LOOKS = {
    "all_reduce": ("#0072B2", "o"),
    "all_gather": ("#009E73", "s"),
    "broadcast": ("#E69F00", "^"),
    "reduce_scatter": ("#CC79A7", "D"),
}
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def can_plot() -> bool:
    """Return whether matplotlib is installed; the command works without."""
    return importlib.util.find_spec("matplotlib") is not None


def plot(result: Mapping[str, Any], title: str, folder: Path) -> list[Path]:
    """Write comm.png and comm.svg; sizes in bytes, times in seconds, bandwidths in GB/s."""
    import matplotlib as mpl  # noqa: PLC0415  # 0.7 s, and an extra

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415  # after the choice of a backend
    from matplotlib import ticker  # noqa: PLC0415

    whole, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    rows = [row for row in result["rows"] if "bytes" in row]
    _panel(left, rows, "bus_bandwidth", "bus bandwidth in GB/s")
    _panel(right, rows, "seconds_median", "median time")
    for axes, formatter in ((left, "{x:g}"), (right, ticker.EngFormatter("s"))):
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(formatter)
        axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    left.legend(frameon=False)
    whole.suptitle(title)
    paths = [folder / f"comm.{suffix}" for suffix in SUFFIXES]
    for path in paths:
        whole.savefig(path, dpi=150)
    plt.close(whole)
    return paths


def _panel(axes: Any, rows: Sequence[Mapping[str, Any]], field: str, label: str) -> None:  # noqa: ANN401  # matplotlib has no types here
    for operation, (colour, marker) in _LOOKS.items():
        chosen = [row for row in rows if row["operation"] == operation]
        sizes, values = [row["bytes"] for row in chosen], [row[field] for row in chosen]
        if chosen:
            look = {"color": colour, "marker": marker, "markersize": 4}
            axes.plot(sizes, values, label=operation.replace("_", "-"), **look)
        wrong = [(row["bytes"], row[field]) for row in chosen if row["wrong_elements"]]
        for point in wrong:
            axes.annotate("wrong", point, color="#D55E00", fontweight="bold")
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel="size", ylabel=label)
    axes.xaxis.set_major_formatter(lambda size, _: readable(size))
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def readable(size: float) -> str:
    """Return a size in bytes with its unit, a power of 1024."""
    unit, name = next(pair for pair in _UNITS if size >= pair[0] or pair[0] == 1)
    return f"{size / unit:.4g} {name}"


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
