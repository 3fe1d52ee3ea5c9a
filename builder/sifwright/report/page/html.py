"""The page as one HTML file that loads nothing: Jinja2, everything from an image escaped."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources

import jinja2
from rich.filesize import decimal

from sifwright.images.contents.packages import Package
from sifwright.report.fleet import ImageState
from sifwright.report.page.report_data import Facts
from sifwright.report.page.sizes import LayerSize
from sifwright.system.terminal import escape_name

_TEST = "test "


def render(facts: Facts) -> str:
    """Return the page's text."""
    return _template("report").render(
        facts=facts,
        style=_text("report.css"),
        largest=max((layer.bytes for layer in facts.layers), default=0) or 1,
        total=sum(layer.bytes for layer in facts.layers),
        end=max((event.start + event.seconds for event in facts.events), default=0.0) or 1.0,
        tests=list(_tests(facts)),
        packages=_packages(facts),
    )


def render_fleet(images: Sequence[ImageState], date: str) -> str:
    """Return the text of the page about all images."""
    counts = Counter(image.state for image in images)
    return _template("fleet").render(
        images=images, date=date, counts=counts, style=_text("report.css")
    )


@cache
def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sifwright", ""),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
        finalize=_finalized,
    )
    environment.filters["size"] = decimal
    return environment.get_template(f"report/page/templates/{name}.html.j2")


def _finalized(value: object) -> object:
    """Remove control characters from output: HTML has no way to write them."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        lines = value.split("\n")
        shown = (x if x.replace("\t", "").isprintable() else escape_name(x) for x in lines)
        return "\n".join(shown)
    return value


def _text(name: str) -> str:
    """Return a part of the page that is ours and holds nothing of an image."""
    return (
        resources.files("sifwright")
        .joinpath(f"report/page/templates/{name}")
        .read_text(encoding="utf-8")
    )


def _tests(facts: Facts) -> Iterator[tuple[str, str, float | None]]:
    """Yield each layer with the result of its test, and the seconds if it ran."""
    test_events = {event.step: event for event in facts.events if event.step.startswith(_TEST)}
    for step in facts.plan.steps:
        event = test_events.get(_TEST + step.layer)
        result = "passed" if event else "no test of its own" if test_events else "not recorded"
        yield step.layer, result, event.seconds if event else None


def _packages(facts: Facts) -> list[tuple[Package, int, str]]:
    """Return packages, sizes and layers, the largest first; of one name, the first has the size."""
    sizes = _sizes(facts.layers)
    rows = []
    for package in facts.packages:
        size, layers = sizes.pop((package.kind, package.name), (0, ()))
        rows.append((package, size, ", ".join(layers)))
    return sorted(rows, key=lambda row: (-row[1], row[0].name))


def _sizes(layers: tuple[LayerSize, ...]) -> dict[tuple[str, str], tuple[int, tuple[str, ...]]]:
    sizes: dict[tuple[str, str], tuple[int, tuple[str, ...]]] = {}
    for layer in layers:
        for part in layer.parts:
            size, names = sizes.get((part.kind, part.name), (0, ()))
            sizes[part.kind, part.name] = size + part.bytes, (*names, layer.name)
    return sizes
