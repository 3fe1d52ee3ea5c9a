"""The command `venv-hook`: a script that makes a virtual environment load a module."""

from argparse import Namespace

from sifwright.cli import arguments as shared
from sifwright.cli.commands.native_module import module_name, native_site, write
from sifwright.cli.context import load
from sifwright.render.build_files import package_text

HELP = "print a script that makes a virtual environment load a module"
GROUP = "install"
_SCRIPT = "install/native/extend-venv-activate"

add_arguments = shared.add_native_module


def run(arguments: Namespace) -> None:
    """Write the script to standard output or to a file."""
    native_site(arguments, load(arguments))
    text = package_text(_SCRIPT).replace(
        "DEFAULT_MODULE=''", f"DEFAULT_MODULE='{module_name(arguments)}'", 1
    )
    write(arguments.output, text, mode=0o755)
