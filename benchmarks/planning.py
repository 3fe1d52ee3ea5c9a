"""Planning, rendering and start-up: the part of sifwright that needs no Apptainer."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from facts import processor_seconds
from figures import Figure, Result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from figures import Settings

__all__ = ["cli_start", "plan_render", "render_1000"]

PLAN_MS = 100.0
START_MS = 150.0
RENDER_SECONDS = 5.0
SITES, IMAGES = 40, 25
SIFWRIGHT = str(Path(sys.executable).with_name("sifwright"))


def plan_render(settings: Settings) -> Result:
    """Load, resolve and render every site x image, each time in a fresh interpreter."""
    rows = [_probe(settings.project / "defs", settings.project) for _ in range(settings.runs(21))]
    figure = Figure(
        name="plan + render",
        what=f"load defs/, plan and render all {rows[0]['pairs']:.0f} site x image, after import",
        unit="ms",
        samples=_column(rows, "seconds", 1e3),
        goal=PLAN_MS,
        sides={"load": _column(rows, "load", 1e3), "render": _column(rows, "render", 1e3)},
    )
    return Result(figures=[figure], details={"pairs": rows[0]["pairs"]})


def render_1000(settings: Settings) -> Result:
    """Load one catalog of 40 sites and 25 images more, and render each image for each site."""
    with tempfile.TemporaryDirectory() as folder:
        defs = _many(settings.project / "defs", Path(folder, "defs"))
        rows = [_probe(defs, settings.project, "bench-") for _ in range(settings.runs(5))]
    assert all(row["pairs"] == SITES * IMAGES for row in rows), rows
    seconds = Figure(
        name="render 1,000 pairs",
        what=f"load, plan and render {SITES} sites x {IMAGES} images (P8)",
        unit="s",
        samples=_column(rows, "seconds"),
        goal=RENDER_SECONDS,
        sides={"load": _column(rows, "load"), "render": _column(rows, "render")},
    )
    memory = Figure(
        name="render 1,000 pairs, memory",
        what="peak of the process that did it",
        unit="MB",
        samples=_column(rows, "peak_mb"),
    )
    return Result(figures=[seconds, memory], details={"bytes_rendered": rows[0]["bytes"]})


def cli_start(settings: Settings) -> Result:
    """Time whole processes, in turn with an interpreter that does nothing."""
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "--version": [SIFWRIGHT, "--version"],
        "list --json": [SIFWRIGHT, "list", "--json"],
    }
    rows = [_walls(commands, settings.project) for _ in range(settings.runs(21))]
    figures = [
        Figure(
            name=f"sifwright {name}",
            what="wall time of the whole process",
            unit="ms",
            samples=_column(rows, name, 1e3),
            goal=START_MS,
            sides={
                "python -c pass": _column(rows, "python -c pass", 1e3),
                "processor time": _column(rows, f"{name}, processor", 1e3),
            },
        )
        for name in ("--version", "list --json")
    ]
    return Result(figures=figures)


def _walls(commands: Mapping[str, list[str]], project: Path) -> dict[str, float]:
    seconds = {}
    for name, command in commands.items():
        start, used = time.perf_counter(), processor_seconds()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=project)
        seconds[name] = time.perf_counter() - start
        seconds[f"{name}, processor"] = processor_seconds() - used
    return seconds


def _probe(*arguments: str | Path) -> dict[str, float]:
    script = Path(__file__).with_name("probe.py")
    command = [sys.executable, str(script), *map(str, arguments)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    row: dict[str, float] = json.loads(answer.stdout)
    return row


def _column(rows: Sequence[Mapping[str, float]], name: str, scale: float = 1) -> tuple[float, ...]:
    return tuple(row[name] * scale for row in rows)


def _many(defs: Path, target: Path) -> Path:
    """Copy `defs` and add sites and images that all differ in an option."""
    shutil.copytree(defs, target)
    site = yaml.safe_load((defs / "sites" / "local.yaml").read_text(encoding="utf-8"))
    for number in range(SITES):
        options = site.setdefault("options", {}).setdefault("base-debian", {})
        options["packages"] = f"package-{number}"
        _write(target / "sites" / f"bench-{number}.yaml", site)
    image = yaml.safe_load((defs / "images" / "pytorch.yaml").read_text(encoding="utf-8"))
    entry = next(entry for entry in image["layers"] if entry.get("layer") == "torch-extras")
    for number in range(IMAGES):
        entry.setdefault("options", {})["torchmetrics"] = f"2.{number}.0"
        _write(target / "images" / f"bench-{number}.yaml", image)
    return target


def _write(path: Path, data: object) -> None:
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
