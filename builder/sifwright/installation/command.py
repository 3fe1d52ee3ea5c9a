"""The commands `easyconfig` and `modulefile`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import context, files
from sifwright.errors import UsageError, quoted
from sifwright.installation import built, bundle, model, placing, rendering
from sifwright.installation.bundle import Bundle
from sifwright.plan import choose, resolve

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from sifwright.installation.facts import ImageFacts
    from sifwright.model import Catalog, Site

__all__ = ["easyconfig", "modulefile"]

# Where a module looks whose site names no folder of its own.
ANY_CENTRAL = "$SIFWRIGHT_IMAGES"
_DATE = re.compile(r"20[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])")
_PATH = re.compile(r"(/|\$[A-Za-z_]).*")


def easyconfig(arguments: Namespace) -> Iterator[str]:
    """Write the folder that `eb` installs from; yields what to say about it."""
    made = _bundle(arguments)
    site, image = arguments.site, made.facts.image or _stem(arguments)
    folder = Path(arguments.output, site, image, "easybuild")
    path = bundle.write(made, folder)
    yield f"easyconfig: {path}"
    if made.sif is None:
        yield f"it installs no image: the module takes {made.module.central}/{made.module.sif}"
    yield f"install it: eb {path}"


def modulefile(arguments: Namespace) -> Iterator[str]:
    """Write the modulefile; yields what to say about it, which is nothing on standard output."""
    made = _bundle(arguments)
    root = Path(arguments.root).absolute()
    text = rendering.modulefile(made.module, str(root), arguments.format)
    if arguments.install:
        placing.install(made, root)
    if not arguments.modulefile:
        sys.stdout.write(text)
        return
    target = Path(arguments.modulefile)
    target.parent.mkdir(parents=True, exist_ok=True)
    files.write(target, text.encode(), mode=0o644)
    yield f"modulefile: {arguments.modulefile}"


def _bundle(arguments: Namespace) -> Bundle:
    catalog = context.load(arguments)
    site = choose(catalog.sites, arguments.site, "site")
    central = _central(arguments, site)
    sif, facts, share = _image(arguments, catalog)
    return Bundle(
        module=model.describe(site, facts, central),
        facts=facts,
        sif=None if arguments.central is not None else sif,
        files=tuple(bundle.contents(catalog, site, share)),
        links=bundle.links(site),
    )


def _image(
    arguments: Namespace, catalog: Catalog
) -> tuple[Path | None, ImageFacts, dict[str, bytes]]:
    if arguments.sif:
        return _other(arguments, choose(catalog.sites, arguments.site, "site"))
    plan = resolve(catalog, arguments.site, arguments.image, arguments.settings)
    if arguments.date:
        _check_date(arguments)
        return (None, *built.of_planned(plan, arguments.date))
    output = context.built(arguments, plan)
    return (output.link, *built.of_built(plan, output))


def _other(arguments: Namespace, site: Site) -> tuple[Path, ImageFacts, dict[str, bytes]]:
    if arguments.image or arguments.settings or arguments.date:
        fix = "Leave IMAGE, --set and --date out: what it is made of is read from the SIF."
        raise UsageError.of("an image that is there already", where="--from", fix=fix)
    sif = Path(arguments.sif)
    return (sif, *built.of_other(site, sif))


def _check_date(arguments: Namespace) -> None:
    if not _DATE.fullmatch(arguments.date):
        raise UsageError.of("no date", where=f"--date {arguments.date}", fix="Example: 20261122")
    if arguments.central is None:
        raise UsageError.of(
            "an image that is not built yet cannot be installed",
            where="--date",
            fix="Add --central: the module takes the image from a folder of the site.",
        )


def _central(arguments: Namespace, site: Site) -> str:
    """The folder of central images; `--central` alone is the site's, or what a variable names."""
    given = arguments.central or site.central or (ANY_CENTRAL if arguments.central == "" else "")
    if given and not (given.isprintable() and _PATH.fullmatch(given)):
        fix = "Begin it with /, and take printable characters."
        raise UsageError.of("not a full path", where=f"--central {quoted(given)}", fix=fix)
    return given.rstrip("/")


def _stem(arguments: Namespace) -> str:
    return Path(arguments.sif).stem
