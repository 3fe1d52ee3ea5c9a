"""The command `uninstall`: remove a native installation."""

from argparse import ArgumentParser, Namespace

from sifwright.install.native.native_folder import native_folder
from sifwright.install.native.uninstall import uninstall
from sifwright.system.terminal import print_line

HELP = "remove an installation that 'install' has made"
GROUP = "install"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("prefix", metavar="DIR", help="the --prefix of the installation")


def run(arguments: Namespace) -> None:
    """Remove all versions and modulefiles; name other files, which stay."""
    others = uninstall(native_folder(arguments.prefix))
    print_line(f"uninstalled: {arguments.prefix}")
    if others:
        print_line(f"not from 'sifwright install', so still there: {', '.join(others)}")
