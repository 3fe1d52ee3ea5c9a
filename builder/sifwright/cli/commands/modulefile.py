"""The command `modulefile`: the module of an installation, without EasyBuild."""

from argparse import Namespace
from pathlib import Path

from sifwright.cli.commands.easyconfig import bundle_of
from sifwright.cli.options import arguments as shared
from sifwright.cli.options.output import write
from sifwright.errors import UsageError
from sifwright.install import modulefile, placement

HELP = "print the modulefile of an installation, without EasyBuild"
GROUP = "install"
ARGUMENTS = (
    *shared.installation(),
    shared.argument(
        "--format", required=True, choices=("lua", "tcl"), help="lua: for Lmod; tcl: for all"
    ),
    shared.argument("--root", required=True, metavar="DIR", help="the folder of the installation"),
    shared.switch("--install", "put the installation there as well"),
    shared.text("--write", "FILE", "file to write; default: print it", dest="modulefile"),
)


def run(arguments: Namespace) -> None:
    """Write the modulefile to standard output or to a file."""
    if arguments.date and arguments.central is None:
        message = "a module without EasyBuild cannot wait for an image that is not built yet"
        fix = "Add --central: the module takes the image from a folder of the site."
        raise UsageError.of(message, where="--date", fix=fix)
    bundle = bundle_of(arguments)
    root = Path(arguments.root).absolute()
    text = modulefile.modulefile(bundle.module, str(root), arguments.format)
    if arguments.install:
        placement.install(bundle, root)
    write(arguments.modulefile, text, mode=0o644, done="modulefile")
