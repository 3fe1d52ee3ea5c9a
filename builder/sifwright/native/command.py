"""The commands for native installations: one file each, to standard output or to a file."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import files
from sifwright.errors import PlanError, UsageError, quoted
from sifwright.native import rendering
from sifwright.plan import choose
from sifwright.render.buildfiles import package_text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from sifwright.model import Catalog, Site

__all__ = ["modulefile", "venv_activate"]

_MODULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)+")
_PYTHON = re.compile(r"3\.[0-9]+")
_SCRIPT = "native/extend-venv-activate"


def venv_activate(arguments: Namespace, catalog: Catalog) -> Iterator[str]:
    """Write the script that makes a virtual environment load the site's module."""
    _site(arguments, catalog)
    text = package_text(_SCRIPT).replace(
        "DEFAULT_MODULE=''", f"DEFAULT_MODULE='{_module(arguments)}'", 1
    )
    yield from _put(arguments.output, text, mode=0o755)


def modulefile(arguments: Namespace, catalog: Catalog) -> Iterator[str]:
    """Write the modulefile of PyTorch below a prefix."""
    site, prefix = _site(arguments, catalog), Path(arguments.prefix)
    if not prefix.is_absolute() or not str(prefix).isprintable() or ":" in str(prefix):
        what = f"{quoted(str(prefix))} is no prefix: a full path without a colon is"
        raise UsageError.of(what, where="--prefix", fix="Name the folder with bin/ and lib/.")
    made = rendering.Native(
        module=_module(arguments),
        prefix=str(prefix),
        packages=_packages(prefix, arguments.python),
        loads=site.modules.native,
        site=site.description,
    )
    text = rendering.modulefile(made, arguments.format)
    yield from _put(arguments.output, text, mode=0o644)


def _site(arguments: Namespace, catalog: Catalog) -> Site:
    site = choose(catalog.sites, arguments.site, "site")
    if "native" not in site.engines:
        what = f"jobs at site '{site.name}' run in containers only"
        raise PlanError.of(what, fix="Its file says so: engines.")
    return site


def _module(arguments: Namespace) -> str:
    name = str(arguments.module)
    if not _MODULE.fullmatch(name):
        what = f"{quoted(name)} is no module with its version"
        raise UsageError.of(what, where="--module", fix="Example: pytorch/2.3.1-gpu")
    return name


def _packages(prefix: Path, python: str) -> str:
    """Where the packages are, below the prefix: as the installation has it, if it is there."""
    if python and not _PYTHON.fullmatch(python):
        raise UsageError.of(f"{quoted(python)} is no Python", where="--python", fix="Example: 3.12")
    found = sorted(path.parent.name for path in prefix.glob("lib/python3*/site-packages"))
    if python or len(found) == 1:
        return f"lib/{f'python{python}' if python else found[0]}/site-packages"
    what = f"there are {len(found)} folders lib/python3…/site-packages"
    raise UsageError.of(what, where=str(prefix), fix="Say which Python it is: --python 3.12")


def _put(output: str, text: str, *, mode: int) -> Iterator[str]:
    if not output:
        sys.stdout.write(text)
        return
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    files.write(Path(output), text.encode(), mode=mode)
    yield f"written: {output}"
