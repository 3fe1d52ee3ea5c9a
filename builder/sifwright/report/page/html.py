"""The page as one HTML file that loads nothing: Jinja2, everything from an image escaped."""

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib import resources

import jinja2
from rich.filesize import decimal

from sifwright.images.contents.packages import Package
from sifwright.report.page.report_data import Facts
from sifwright.report.page.sizes import Cell, LayerSize, layout
from sifwright.system.terminal import escape_name

# A wide map for screens, a tall one for telephones; the style sheet shows one of them.
_MAPS = {"wide": (960.0, 520.0), "tall": (360.0, 640.0)}
_COLOURS = 8
_CHARACTER, _LINE, _SHORTEST = 6.9, 13.0, 5
_TEST = "test "


def render(facts: Facts) -> str:
    """Return the page's text."""
    script = _text("report.js")
    maps = {name: layout(facts.layers, *size) for name, size in _MAPS.items()}
    return _template().render(
        facts=facts,
        style=_text("report.css"),
        script=script,
        script_digest=_digest(script),
        maps=maps,
        sizes=_MAPS,
        total=sum(layer.bytes for layer in facts.layers),
        end=max((event.start + event.seconds for event in facts.events), default=0.0) or 1.0,
        tests=list(_tests(facts)),
        packages=_packages(facts),
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sifwright", ""),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
        finalize=_finalized,
    )
    environment.filters |= {"size": decimal, "label": _label, "colour": _colour}
    return environment.get_template("report/page/templates/report.html.j2")


def _finalized(value: object) -> object:
    """Remove control characters from output: HTML has no way to write them."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return "\n".join(map(_visible, value.split("\n")))
    return value


def _visible(line: str) -> str:
    return line if line.replace("\t", "").isprintable() else escape_name(line)


def _text(name: str) -> str:
    """Return a part of the page that is ours and holds nothing of an image."""
    return resources.files("sifwright").joinpath(f"report/page/templates/{name}").read_text()


def _digest(script: str) -> str:
    """Return the digest for the page's policy: a browser runs this script and no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _colour(number: int) -> str:
    return f"c{number % _COLOURS}"


def _label(cell: Cell) -> list[str]:
    """Return the lines that fit into a cell: its name, cut if necessary, and its size."""
    room = int((cell.box.height - 4) // _LINE)
    widest = int((cell.box.width - 6) / _CHARACTER)
    if widest < min(_SHORTEST, len(cell.name)):
        return []
    size = decimal(cell.bytes)
    name = cell.name if len(cell.name) <= widest else f"{cell.name[: widest - 1]}…"
    return [name, size][:room] if len(size) <= widest else [name][:room]


def _tests(facts: Facts) -> Iterator[tuple[str, str, float | None]]:
    """Yield each layer with the result of its test, and the seconds if it ran."""
    ran = {event.step: event for event in facts.events if event.step.startswith(_TEST)}
    for step in facts.plan.steps:
        event = ran.get(_TEST + step.layer)
        result = "passed" if event else "no test of its own" if ran else "not recorded"
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
