"""The command `sign`: sign an image, so that every byte of it can be checked."""

from argparse import Namespace
from pathlib import Path

from sifwright.cli.options import arguments as shared
from sifwright.make_image.signing.sign import sign_image
from sifwright.make_image.signing.statements import SUFFIX
from sifwright.system.terminal import print_line

HELP = "sign an image, in the SIF and in a file beside it"
GROUP = "build"
ARGUMENTS = (
    shared.argument("sif", metavar="SIF", help="an image that is not signed yet"),
    shared.argument(
        "--key",
        required=True,
        metavar="KEY",
        help="a private key in PEM, or a user or fingerprint of Apptainer's PGP keyring",
    ),
)


def run(arguments: Namespace) -> None:
    """Sign the image, and print what is new."""
    signer = sign_image(Path(arguments.sif), arguments.key)
    print_line(f"signed: {arguments.sif} by {signer}; keep {arguments.sif}{SUFFIX} beside it")
