"""The command `plan`: the steps of an image, and what a build of it would do here."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from sifwright.catalog.layer_builds import LayerBuild
from sifwright.cli.options import arguments as shared
from sifwright.cli.options.context import output_of, resolve_plan
from sifwright.cli.options.output import print_lines, table
from sifwright.make_image.check_machine import disk_space
from sifwright.make_image.forecast import forecast
from sifwright.make_image.forecast.disk_needs import DiskNeeds
from sifwright.make_image.forecast.forecast import StepForecast
from sifwright.plan.model import Plan, Step
from sifwright.plan.plan_file import plan_document
from sifwright.plan.tested_builds import deepest_build, describe, obstacle, untested
from sifwright.system.terminal import print_json, print_line, print_table

HELP = "show what a build would run, what is cached, and why"
GROUP = "describe"
ARGUMENTS = (
    *shared.PLAN,
    shared.OUTPUT_FOLDER,
    shared.switch("--explain", "show every option and who set it, and the test of each layer"),
    shared.JSON,
)


def run(arguments: Namespace) -> None:
    """Print the steps, and what a build here would do."""
    plan = resolve_plan(arguments)
    folder = output_of(arguments, plan).folder
    if arguments.json:
        print_json(_document(plan, folder))
    else:
        show(plan, folder, explain=arguments.explain)


def show(plan: Plan, folder: Path, *, explain: bool) -> None:
    """Print the plan for people: with what a build into this folder would do, or with options."""
    print_lines(_lines(plan, explain=explain))
    if not explain:
        forecasts = forecast.forecast_steps(plan, folder)
        print_line("")
        heads = ("layer", "on this machine", "seconds", "MB", "why")
        rows = map(_cells, forecasts)
        print_table(table(heads, rows, right=("seconds", "MB"), wrapped=heads))
        print_lines(_summaries(forecasts, folder))


def _cells(outlook: StepForecast) -> tuple[str, ...]:
    return (
        outlook.layer,
        "will run" if outlook.why else "cached",
        "" if outlook.seconds is None else f"{outlook.seconds:.1f}",
        "" if outlook.bytes is None else f"{outlook.bytes / 1e6:.1f}",
        outlook.why.text if outlook.why else "",
    )


def _step_line(*words: str) -> str:
    return "{:<12}  {:<18}  {:<11}  {}".format(*words)


def _explanations(plan: Plan, step: Step, build: LayerBuild | None) -> Iterator[str]:
    """Yield the options with their origins, and the test of such a build, or the obstacle."""
    for name, value in step.options.items():
        setting = f"{name} = {value.text or '(empty)'}"
        yield f"{setting:<44}  {value.origin}"
    if build:
        yield f"tested by {describe(build)}"
    elif reason := obstacle(plan, step):
        yield f"no test builds it like this: {reason.why}"


def _document(plan: Plan, output: Path) -> dict[str, object]:
    """Return the plan, its forecast and untested layers (docs/reference/plan-json.md)."""
    forecasts = forecast.forecast_steps(plan, output)
    needs = asdict(_needs(forecasts))
    ahead = {**forecast.document(forecasts), "needs": needs}
    return {**plan_document(plan), "untested": asdict(untested(plan)), "forecast": ahead}


def _summaries(forecasts: Sequence[StepForecast], output: Path) -> Iterator[str]:
    """Yield the steps that will run, the space they need, and a note about old packages."""
    yield _summary(forecasts)
    if old := forecast.old_packages_note(forecasts, datetime.now(UTC)):
        yield old
    if needs := disk_space.summary_line(_needs(forecasts), output):
        yield needs


def _needs(forecasts: Sequence[StepForecast]) -> DiskNeeds:
    return forecast.estimate_disk_needs(
        forecasts, sum(forecast.why is None for forecast in forecasts)
    )


def _summary(forecasts: Sequence[StepForecast]) -> str:
    """Return in one line how many steps will run, and their time at the last build."""
    ahead = [outlook for outlook in forecasts if outlook.why]
    known = [outlook for outlook in ahead if outlook.seconds is not None]
    if not ahead:
        return "every step is cached"
    text = f"{len(ahead)} of {len(forecasts)} steps will run"
    if known:
        seconds = sum(outlook.seconds or 0 for outlook in known)
        size = sum(outlook.bytes or 0 for outlook in known) / 1e6
        some = "they" if len(known) == len(ahead) else f"{len(known)} of them"
        text += f"; before, {some} took {seconds:.0f} s and {size:.0f} MB"
    return text


def _lines(plan: Plan, *, explain: bool) -> Iterator[str]:
    """Yield the steps; to explain them, with their options and the origins."""
    yield f"image {plan.image.name} for site {plan.site.name}"
    yield _step_line("step", "layer", "tested", "summary")
    for step in plan.steps:
        layer, build = step.layer, deepest_build(plan, step)
        other = "-" if layer.built is None else "elsewhere" if layer.built else "never"
        depth = build.depth if build else other
        yield _step_line(step.id[:12], layer.name, depth, layer.summary)
        if explain:
            yield from (f"{'':14}{text}" for text in _explanations(plan, step, build))
    for item in plan.left_out:
        yield _step_line("left out", item.layer, "", item.reason)
    missing = untested(plan)
    if missing.never:
        yield f"{'never built':<12}  by a test of sifwright: {', '.join(missing.never)}"
    if missing.elsewhere:
        where = (
            "built for other GPUs or processors, on other bases, with stand-ins or other options"
        )
        yield f"{'elsewhere':<12}  {where}: {', '.join(missing.elsewhere)}"
