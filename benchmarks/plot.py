"""One picture of all results: how much of each goal is used, and ratios to the usual way."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import patches
from matplotlib import pyplot as plt  # after the choice of a backend that needs no display

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from figures import Figure

__all__ = ["plot", "plot_growth"]

# Okabe and Ito's colours, told apart by colour-blind readers too.
_COLOURS = {True: "#009E73", False: "#D55E00", None: "#56B4E9"}
_MEANINGS = {True: "goal reached", False: "goal missed", None: "no goal"}
_GOAL = "#222222"
# Behind a text that crosses a line.
_PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}


def plot(figures: Sequence[Figure], machine: Mapping[str, Any], target: Path) -> None:
    """Write target.png and target.svg."""
    times = [figure for figure in figures if figure.unit != "ratio" and figure.goal is not None]
    ratios = [figure for figure in figures if figure.unit == "ratio"]
    panels = [rows for rows in (times, ratios) if rows]
    heights = [len(rows) + 1.2 for rows in panels]
    whole, grid = plt.subplots(
        len(panels),
        figsize=(9, 0.55 * sum(heights) + 0.9),
        height_ratios=heights,
        squeeze=False,
        layout="constrained",
    )
    for axes, rows in zip(grid[:, 0], panels, strict=True):
        (_times if rows is times else _ratios)(axes, rows)
    _explain(whole, figures, machine)
    for suffix in ("png", "svg"):
        whole.savefig(target.with_suffix(f".{suffix}"), dpi=150)
    plt.close(whole)


def _times(axes: Any, rows: Sequence[Figure]) -> None:  # noqa: ANN401  # matplotlib has no types here
    axes.set_title("As a share of the goal", loc="left", fontweight="bold")
    goals = [figure.goal or 1 for figure in rows]
    _bars(axes, rows, goals)
    for row, figure in enumerate(rows):
        text = f"{figure.median:.4g} of {figure.goal:g} {figure.unit}"
        _label(axes, row, _end(figure, goals[row]), text)
    axes.axvline(1, color=_GOAL, linewidth=2)
    axes.set_xlabel("median / goal  (line: the goal)")


def _ratios(axes: Any, rows: Sequence[Figure]) -> None:  # noqa: ANN401
    title = "Against the usual way"
    axes.set_title(title, loc="left", fontweight="bold")
    _bars(axes, rows, [1.0] * len(rows))
    for row, figure in enumerate(rows):
        if figure.goal:
            axes.vlines(figure.goal, row - 0.4, row + 0.4, color=_GOAL, linewidth=3)
        goal = f", goal ≤ {figure.goal:g}" if figure.goal else ""
        _label(axes, row, max(_end(figure, 1), figure.goal or 0), f"{figure.median:.2g}{goal}")
    # From a hundredth to ten times: as lengths, the small ones could not be told apart.
    axes.set_xscale("log")
    ends = [value for figure in rows for value in (*figure.samples, figure.goal) if value]
    axes.set_xlim(min(ends, default=1) / 2, max(1, *ends) * 20)
    axes.axvline(1, color="grey", linewidth=1, linestyle="--")
    axes.set_xlabel("ratio, median of the pairs, logarithmic  (dashed: the same; bold: the goal)")


def _bars(axes: Any, rows: Sequence[Figure], scales: Sequence[float]) -> None:  # noqa: ANN401
    """Draw medians as bars and samples as dots."""
    places = range(len(rows))
    values = [figure.median / scale for figure, scale in zip(rows, scales, strict=True)]
    axes.barh(places, values, 0.6, color=[_COLOURS[figure.reached] for figure in rows])
    for position, figure, scale in zip(places, rows, scales, strict=True):
        dots = [sample / scale for sample in figure.samples]
        axes.plot(dots, [position] * len(dots), ".", color="black", markersize=3, alpha=0.45)
    longest = max(_end(figure, scale) for figure, scale in zip(rows, scales, strict=True))
    axes.set_xlim(0, max(1, longest) * 1.28)
    axes.set_yticks(places, [figure.name for figure in rows])
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)


def _end(figure: Figure, scale: float) -> float:
    return max(figure.samples) / scale


def _label(axes: Any, position: int, end: float, text: str) -> None:  # noqa: ANN401
    axes.annotate(
        text, (end, position), xytext=(7, 0), textcoords="offset points", va="center", bbox=_PAPER
    )


def _explain(whole: Any, figures: Sequence[Figure], machine: Mapping[str, Any]) -> None:  # noqa: ANN401
    states = [state for state in _COLOURS if any(figure.reached is state for figure in figures)]
    whole.legend(
        handles=[patches.Patch(color=_COLOURS[key], label=_MEANINGS[key]) for key in states],
        loc="outside upper right",
        ncols=len(states),
        frameon=False,
    )
    facts = f"{machine['cores']} cores, {machine['memory_gb']:.0f} GB, {machine['system']}, "
    whole.supxlabel(
        f"{facts}{machine['engine']}, Python {machine['python']}; dots: single runs",
        fontsize="small",
        color="dimgrey",
    )


def plot_growth(benchmarks: Mapping[str, Any], target: Path) -> None:
    """Write target.png and target.svg, if any benchmark has measured growth."""
    measured = [row["details"] for row in benchmarks.values() if "sizes" in row.get("details", {})]
    if not measured:
        return
    whole, grid = plt.subplots(
        1, len(measured), figsize=(4.5 * len(measured), 3.6), squeeze=False, layout="constrained"
    )
    for axes, details in zip(grid[0], measured, strict=True):
        _curves(axes, details)
    for suffix in ("png", "svg"):
        whole.savefig(target.with_suffix(f".{suffix}"), dpi=150)
    plt.close(whole)


def _curves(axes: Any, details: Mapping[str, Any]) -> None:  # noqa: ANN401  # matplotlib has no types here
    for label, seconds in details["seconds"].items():
        axes.plot(details["sizes"], seconds, "o-", label=label)
    axes.set_xlabel(details["unit"])
    axes.set_ylabel("seconds, layered")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
