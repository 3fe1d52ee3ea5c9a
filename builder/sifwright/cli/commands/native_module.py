"""The command `native-module`: the modulefile of PyTorch below a prefix of the host."""

import re
from argparse import Namespace
from pathlib import Path

from sifwright.catalog.model import Catalog, Site
from sifwright.cli.options import arguments as shared
from sifwright.cli.options.context import load
from sifwright.cli.options.output import write
from sifwright.errors import PlanError, UsageError, quoted
from sifwright.install.native import render_native
from sifwright.plan.resolve import get_or_suggest

HELP = "print the modulefile of PyTorch installed on the host"
GROUP = "install"

_MODULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)+")
_PYTHON = re.compile(r"3\.[0-9]+")
ARGUMENTS = (
    *shared.NATIVE_MODULE,
    shared.argument(
        "--prefix", required=True, metavar="DIR", help="the folder with its bin/ and lib/"
    ),
    shared.text("--python", "VERSION", "its Python, as 3.12; default: that of DIR"),
    shared.argument(
        "--format", choices=("lua", "tcl"), default="lua", help="lua: for Lmod; tcl: for all (lua)"
    ),
)


def run(arguments: Namespace) -> None:
    """Write the modulefile to standard output or to a file."""
    site, prefix = native_site(arguments, load(arguments)), Path(arguments.prefix)
    if not prefix.is_absolute() or not str(prefix).isprintable() or ":" in str(prefix):
        message = f"{quoted(str(prefix))} is no prefix: a full path without a colon is"
        raise UsageError.of(message, where="--prefix", fix="Name the folder with bin/ and lib/.")
    native = render_native.Native(
        module=module_name(arguments),
        prefix=str(prefix),
        packages=_packages(prefix, arguments.python),
        site=site,
    )
    text = render_native.modulefile(native, arguments.format)
    write(arguments.output, text, mode=0o644)


def native_site(arguments: Namespace, catalog: Catalog) -> Site:
    """Return the site; raises `PlanError` if its jobs run in containers only."""
    site = get_or_suggest(catalog.sites, arguments.site, "site")
    if "host" not in site.run_in:
        message = f"jobs at site '{site.name}' run in containers only"
        fix = "Add host to run-in in its file, if jobs may run on the host."
        raise PlanError.of(message, fix=fix)
    return site


def module_name(arguments: Namespace) -> str:
    """Return --module; raises `UsageError` if it has no version."""
    name = str(arguments.module)
    if not _MODULE.fullmatch(name):
        message = f"{quoted(name)} is no module with its version"
        raise UsageError.of(message, where="--module", fix="Example: pytorch/2.3.1-gpu")
    return name


def _packages(prefix: Path, python: str) -> str:
    """Return the folder of packages below the prefix, as the installation has it."""
    if python and not _PYTHON.fullmatch(python):
        raise UsageError.of(f"{quoted(python)} is no Python", where="--python", fix="Example: 3.12")
    folders = sorted(path.parent.name for path in prefix.glob("lib/python3*/site-packages"))
    if python or len(folders) == 1:
        return f"lib/{f'python{python}' if python else folders[0]}/site-packages"
    message = f"there are {len(folders)} folders lib/python3…/site-packages"
    raise UsageError.of(message, where=str(prefix), fix="Say which Python it is: --python 3.12")
