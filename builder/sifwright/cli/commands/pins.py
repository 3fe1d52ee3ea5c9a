"""The command `pins`: list every source and its pin, look one up, or check them all."""

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from sifwright.catalog.model import Catalog
from sifwright.catalog.project_folder import project_folder
from sifwright.cli.options import arguments as shared
from sifwright.cli.options.context import load
from sifwright.cli.options.output import table
from sifwright.errors import UsageError
from sifwright.host.network import pins
from sifwright.system.terminal import print_json, print_table

HELP = "list the sources of layers and their pins, or look one up"
GROUP = "maintain"

_SHOWN = 12
ARGUMENTS = (
    shared.argument("layer", nargs="?", default="", metavar="LAYER", help="only this layer"),
    shared.argument(
        "source", nargs="?", default="", metavar="SOURCE", help="only this source of it"
    ),
    shared.argument(
        "version", nargs="?", default="", metavar="VERSION", help="only this version of it"
    ),
    shared.switch("--add", "look the version up and pin it"),
    shared.switch("--check", "compare with what is there now"),
    shared.JSON,
)


def run(arguments: Namespace) -> None:
    """Print the pins; raises an error for each pin that is not its source's."""
    catalog = load(arguments)
    entries = _entries(catalog, project_folder(arguments.project) / "defs", arguments)
    if arguments.json:
        print_json([asdict(entry) for entry in entries])
    else:
        heads = ("layer", "source", "version", "pin", "state", "from")
        print_table(table(heads, map(_row, entries)))
    for error in pins.errors(entries):
        raise error


def _entries(catalog: Catalog, defs: Path, arguments: Namespace) -> list[pins.PinStatus]:
    if arguments.add and arguments.check:
        fix = "--add looks the pin up itself."
        raise UsageError.of("--add and --check do not go together", fix=fix)
    words = [word for word in (arguments.layer, arguments.source, arguments.version) if word]
    if arguments.add:
        return [pins.add(catalog, defs, words)]
    return (pins.check if arguments.check else pins.entries)(catalog, words)


def _row(entry: pins.PinStatus) -> tuple[str, ...]:
    """Return the cells of a version; digests are cut, and complete with --json."""
    upstream = f": {entry.found[:_SHOWN]}" if entry.found and entry.found != entry.pin else ""
    reason = f": {entry.reason}" if entry.reason else ""
    state = f"{entry.state}{upstream}{reason}"
    return entry.layer, entry.source, entry.version, entry.pin[:_SHOWN], state, entry.url
