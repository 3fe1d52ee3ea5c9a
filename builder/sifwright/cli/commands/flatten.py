"""The command `flatten`: from a layered SIF one with a single partition."""

from argparse import Namespace
from pathlib import Path

from sifwright.cli.options import arguments as shared
from sifwright.make_image.deliver.flatten_sif import flatten_sif
from sifwright.system.terminal import print_line

HELP = "write a layered SIF as one with a single partition"
GROUP = "build"
ARGUMENTS = (
    shared.argument("sif", metavar="SIF", help="a layered SIF; with --compression also a flat one"),
    shared.argument("target", metavar="TARGET", help="the new flat SIF"),
    shared.argument(
        "--compression",
        choices=("zstd", "gzip"),
        default="",
        help="compression of the flat SIF (default: that of the layers; another one repacks all)",
    ),
)


def run(arguments: Namespace) -> None:
    """Write the flat SIF, and print where it is."""
    target = Path(arguments.target)
    count = flatten_sif(Path(arguments.sif), target, arguments.compression)
    print_line(
        f"flattened: {target} ({target.stat().st_size / 1e6:.0f} MB, {count} partitions into 1)"
    )
