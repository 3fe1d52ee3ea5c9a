#!/usr/bin/env python3
"""Measure sifwright; write build/bench/results.json, and print a table.

    make bench
    make bench ONLY=build,rebuild
    .venv/bin/python benchmarks/run.py --only build --pairs 3
    .venv/bin/python benchmarks/run.py --only tree --size 1 a tree of 1 GB instead of 5

With --only, the other results that this machine has in results.json stay.
docs/reference/benchmarks.md says what each benchmark does.

All compared programs run in one run, on the same machine. Short ones run in turn (A B A B), and the
figure is the median of the ratios. If builds take minutes, the engine's build runs once, or --pairs
times. The table names a goal that was missed, which is no failure.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from by_buildah import by_buildah
from cold import build
from facts import machine
from figures import Result, Settings, Skipped
from growth import by_layers, by_size, tree
from importing import import_torch, ranks_import_torch
from matrix import six_images
from rebuild import rebuild, second_site
from rich.console import Console
from table import table

from sifwright.system.tempdirs import remove_stale

PROJECT = Path(__file__).resolve().parent.parent
FOLDER = PROJECT / "build" / "bench"
BENCHMARKS = {
    "build": build,
    "rebuild": rebuild,
    "second-site": second_site,
    "buildah": by_buildah,
    "matrix": six_images,
    "import-torch": import_torch,
    "ranks": ranks_import_torch,
    "tree": tree,
    "growth-size": by_size,
    "growth-layers": by_layers,
}


def main() -> None:
    arguments = _arguments()
    console = Console(stderr=True, highlight=False)
    settings = Settings(
        project=PROJECT,
        folder=FOLDER,
        pairs=max(1, arguments.pairs),
        size=arguments.size,
        note=console.print,
    )
    FOLDER.mkdir(parents=True, exist_ok=True)
    # Remains of killed runs.
    remove_stale(FOLDER)
    results = _earlier()
    names = arguments.only or list(BENCHMARKS)
    for name in names:
        console.print(f"{name} …")
        results["benchmarks"][name] = _run(name, settings)
        (FOLDER / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    # A pipe has no width of its own.
    wide = Console() if sys.stdout.isatty() else Console(width=170)
    wide.print(table({name: results["benchmarks"][name] for name in names}))
    console.print(f"written: {FOLDER.relative_to(PROJECT)}/results.json")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--only",
        type=_benchmarks,
        metavar="NAME[,NAME]",
        help=", ".join(BENCHMARKS),
    )
    parser.add_argument("--pairs", type=int, default=1, help="builds of each kind (1)")
    parser.add_argument(
        "--size", type=float, default=5, help="GB of the synthetic tree; it grows to twice that (5)"
    )
    return parser.parse_args()


def _benchmarks(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in BENCHMARKS]:
        raise argparse.ArgumentTypeError(f"no benchmark '{unknown[0]}'")
    return names


def _earlier() -> dict[str, Any]:
    """Return the results of this very machine, so that --only keeps the other benchmarks."""
    fresh: dict[str, Any] = {"machine": machine(), "benchmarks": {}}
    try:
        stored: dict[str, Any] = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return fresh
    return stored if stored.get("machine") == fresh["machine"] else fresh


def _run(name: str, settings: Settings) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_before": os.getloadavg()[0],
    }
    try:
        result: Result = BENCHMARKS[name](settings)
    except Skipped as reason:
        return {**facts, "skipped": str(reason), "figures": []}
    figures = [figure.document() for figure in result.figures]
    return {**facts, "figures": figures, "details": dict(result.details)}


if __name__ == "__main__":
    main()
