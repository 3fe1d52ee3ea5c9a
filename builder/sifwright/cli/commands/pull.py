"""The command `pull`: a SIF from a registry, the same bytes that were pushed."""

from argparse import Namespace
from pathlib import Path

from sifwright.cli.options import arguments as shared
from sifwright.images.transfer import sif_registry
from sifwright.system.terminal import print_line

HELP = "pull a SIF that was pushed, with its signed statements"
GROUP = "install"
ARGUMENTS = (
    shared.argument("source", metavar="oras://REGISTRY/NAME:TAG", help="name in the registry"),
    shared.argument("target", nargs="?", metavar="SIF", help="a new file; default: NAME_TAG.sif"),
    shared.NO_HTTPS,
)


def run(arguments: Namespace) -> None:
    """Write the SIF, and print where it is."""
    source = sif_registry.reference(arguments.source, http=arguments.no_https)
    name = f"{source.repository.rpartition('/')[2]}_{source.tag or 'image'}.sif"
    target = Path(arguments.target or name)
    signed = sif_registry.pull(arguments.source, target, http=arguments.no_https)
    print_line(f"pulled: {target} ({target.stat().st_size / 1e6:.0f} MB)")
    if signed:
        print_line(f"check its signature: sifwright verify {target}")
