"""The command `list`: the sites, images and layers of defs/."""

from argparse import Namespace

from sifwright.cli.options import arguments as shared
from sifwright.cli.options.context import load
from sifwright.cli.options.output import table
from sifwright.plan.tested_builds import depths
from sifwright.report import show_site
from sifwright.system.terminal import print_json, print_line, print_table

HELP = "show the sites, images and layers there are"
GROUP = "describe"
ARGUMENTS = (
    shared.argument("kind", nargs="?", choices=("sites", "images", "layers"), help="only these"),
    shared.JSON,
)


def run(arguments: Namespace) -> None:
    """Print the names with what each is, or the sites as a table."""
    catalog = load(arguments)
    texts = {
        "sites": {site.name: site.description for site in catalog.sites.values()},
        "images": {image.name: image.description for image in catalog.images.values()},
        "layers": {layer.name: layer.summary for layer in catalog.layers.values()},
    }
    kinds = [arguments.kind] if arguments.kind else list(texts)
    if arguments.json:
        tested = {"tested": {name: depths(layer) for name, layer in catalog.layers.items()}}
        print_json({kind: texts[kind] for kind in kinds} | (tested if "layers" in kinds else {}))
        return
    if kinds == ["sites"]:
        heads, rows = show_site.HEADS, map(show_site.row, catalog.sites.values())
        print_table(table(heads, rows, wrapped=heads[-1:], head_style="table.header"))
        return
    for kind in kinds:
        print_line("layers, and how far tests tried them" if kind == "layers" else kind)
        states = {
            name: depths(catalog.layers[name]) if kind == "layers" else "" for name in texts[kind]
        }
        width = max(map(len, states.values()), default=0)
        for name, text in texts[kind].items():
            print_line(
                "  ".join(filter(None, ("", f"{name:<18}", states[name].ljust(width), text)))
            )
