"""The command `easyconfig`: a folder from which EasyBuild installs."""

import re
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from sifwright.catalog.model import Catalog, Site
from sifwright.cli.options import arguments as shared
from sifwright.cli.options import context, matrix
from sifwright.errors import UsageError, quoted
from sifwright.host.network.http import redact_url
from sifwright.install import collect_facts, easybuild_folder, help_text, module
from sifwright.install.easybuild_folder import EasyBuildFolder
from sifwright.install.installed_image import InstalledImage
from sifwright.plan.resolve import get_or_suggest, resolve
from sifwright.system.terminal import print_line

HELP = "write what EasyBuild installs: image, run scripts and module"
GROUP = "install"

# Folder where a module looks for the image if its site names none.
ANY_CENTRAL = "$SIFWRIGHT_IMAGES"
_DATE = re.compile(r"20[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])")
_URL = re.compile(r"https?://[^\s'\"\\{}%]+")
_PATH = re.compile(r"(/|\$[A-Za-z_]).*")
ARGUMENTS = (
    *shared.installation(", writes DIR/SITE/IMAGE/easybuild"),
    shared.text(
        "--image-url",
        "URL",
        "folder on a server that has the image: eb fetches it and compares its sha256",
    ),
)


def run(arguments: Namespace) -> None:
    """Write the folder that `eb` installs from."""
    url = _image_url(arguments)
    content = replace(bundle_of(arguments), image_url=url)
    site, image = arguments.site, content.facts.image or Path(arguments.sif).stem
    folder = Path(arguments.output, site, f"{image}{matrix.suffix(arguments)}", "easybuild")
    path = easybuild_folder.write(content, folder)
    print_line(f"easyconfig: {path}")
    sif = content.module.sif
    if url:
        print_line(f"eb fetches {url}/{sif}: put the image there under this name")
    elif content.missing:
        print_line(f"it comes without its image: put {sif} beside it, once that is built")
    elif content.sif is None:
        print_line(f"it installs no image: the module takes {content.module.central}/{sif}")
    print_line(f"install it: eb {path}")


def bundle_of(arguments: Namespace) -> EasyBuildFolder:
    """Return the files of an installation."""
    matrix.read_name(arguments)
    catalog = context.load(arguments)
    site = get_or_suggest(catalog.sites, arguments.site, "site")
    central = _central(arguments, site)
    sif, facts, share = _image(arguments, catalog)
    brings = arguments.central is None
    return EasyBuildFolder(
        module=module.describe(site, facts, central),
        facts=facts,
        sif=sif if brings else None,
        programs=tuple(easybuild_folder.programs(catalog)),
        notes=tuple(easybuild_folder.notes(site, share)),
        links=easybuild_folder.links(site),
        missing=tuple(help_text.missing(site, facts, central)) if brings and sif is None else (),
    )


def _image(
    arguments: Namespace, catalog: Catalog
) -> tuple[Path | None, InstalledImage, dict[str, bytes]]:
    if arguments.sif:
        return _other(arguments, get_or_suggest(catalog.sites, arguments.site, "site"))
    plan = resolve(catalog, arguments.site, arguments.image, arguments.settings)
    if arguments.date:
        if not _DATE.fullmatch(arguments.date):
            where = f"--date {arguments.date}"
            raise UsageError.of("no date", where=where, fix="Example: 20261122")
        return (None, *collect_facts.from_planned(plan, arguments.date))
    output = context.built(arguments, plan)
    return (output.link, *collect_facts.from_built(plan, output))


def _other(arguments: Namespace, site: Site) -> tuple[Path, InstalledImage, dict[str, bytes]]:
    if arguments.image or arguments.settings or arguments.date:
        message = "IMAGE, --set and --date are for an image that sifwright builds"
        fix = "Leave IMAGE, --set and --date out: versions and environment are read from the SIF."
        raise UsageError.of(message, where=f"--from {arguments.sif}", fix=fix)
    sif = Path(arguments.sif)
    return (sif, *collect_facts.from_foreign(site, sif))


def _image_url(arguments: Namespace) -> str:
    """Return the address of the folder; everybody can read an easyconfig, so it has no login."""
    url = str(arguments.image_url).rstrip("/")
    if not url:
        return ""
    where = f"--image-url {quoted(redact_url(url))}"
    if not _URL.fullmatch(url) or redact_url(url) != url:
        fix = "Give http:// or https://, a host and a folder, without a user name and password."
        raise UsageError.of("no address that eb could fetch from", where=where, fix=fix)
    if arguments.date or arguments.central is not None:
        fix = "Build the image first, and leave --date and --central out."
        raise UsageError.of("the sha256 of an image that is here is needed", where=where, fix=fix)
    return url


def _central(arguments: Namespace, site: Site) -> str:
    """Return the folder of central images: of --central, the site, or a variable."""
    given = arguments.central or site.central or (ANY_CENTRAL if arguments.central == "" else "")
    if given and not (given.isprintable() and _PATH.fullmatch(given)):
        fix = "Begin it with /, and take printable characters."
        raise UsageError.of("not a full path", where=f"--central {quoted(given)}", fix=fix)
    return given.rstrip("/")
