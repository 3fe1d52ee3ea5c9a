"""How builds grow, as curves: seconds by the size of the tree, and by the number of layers."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib import pyplot as plt  # plot.py chooses the backend

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["plot_growth"]


def plot_growth(benchmarks: Mapping[str, Any], target: Path) -> None:
    """Write target.png and target.svg, if any benchmark has measured growth."""
    found = [row["details"] for row in benchmarks.values() if "sizes" in row.get("details", {})]
    if not found:
        return
    whole, grid = plt.subplots(
        1, len(found), figsize=(4.5 * len(found), 3.6), squeeze=False, layout="constrained"
    )
    for axes, details in zip(grid[0], found, strict=True):
        _curves(axes, details)
    for suffix in ("png", "svg"):
        whole.savefig(target.with_suffix(f".{suffix}"), dpi=150)
    plt.close(whole)


def _curves(axes: Any, details: Mapping[str, Any]) -> None:  # noqa: ANN401  # matplotlib has no types here
    for what, seconds in details["seconds"].items():
        axes.plot(details["sizes"], seconds, "o-", label=what)
    axes.set_xlabel(details["unit"])
    axes.set_ylabel("seconds, layered")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
