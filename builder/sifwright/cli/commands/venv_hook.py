"""The command `venv-hook`: a script that makes a virtual environment load a module."""

from argparse import Namespace

from sifwright.cli.commands.native_module import module_name, native_site
from sifwright.cli.options import arguments as shared
from sifwright.cli.options.context import load
from sifwright.cli.options.output import write
from sifwright.install.native import render_native

HELP = "print a script that makes a virtual environment load a module"
GROUP = "install"

ARGUMENTS = shared.NATIVE_MODULE


def run(arguments: Namespace) -> None:
    """Write the script to standard output or to a file."""
    native_site(arguments, load(arguments))
    write(arguments.output, render_native.venv_hook(module_name(arguments)), mode=0o755)
