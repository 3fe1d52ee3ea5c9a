"""The command `report`: write the page about an image or an installation, or about all."""

from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from sifwright.catalog.model import Catalog
from sifwright.cli.options import arguments as shared
from sifwright.cli.options import context, matrix
from sifwright.errors import MachineError, UsageError
from sifwright.install.native.native_folder import (
    InstalledVersion,
    NativeFolder,
    native_folder,
    without_link,
)
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.plan.model import Plan
from sifwright.plan.native import with_env_manager
from sifwright.plan.resolve import get_or_suggest, resolve
from sifwright.report.fleet import MISSING, REFUSED, ImageState, image_state
from sifwright.report.page import prefix_data
from sifwright.report.page.html import render, render_fleet
from sifwright.report.page.report_data import gather
from sifwright.report.prefix_state import prefix_state
from sifwright.system import access, files
from sifwright.system.tempdirs import name_folder_in_errors
from sifwright.system.terminal import print_line

HELP = "write a page about an image or an installation, or about all"
GROUP = "look"

NAME = "report.html"
_BUILD = Path("build")
ARGUMENTS = (
    shared.OPTIONAL_SITE,
    shared.IMAGE,
    shared.switch("--all", "all sites and images: built, tested, stale, broken"),
    shared.repeated("--prefix", "DIR", "a native installation"),
    shared.text("--output", "FILE", "file to write (report.html in its folder)"),
)


def run(arguments: Namespace) -> None:
    """Write the page, and print where it is."""
    _refuse(arguments)
    page, arguments.output, arguments.settings = arguments.output, "build", []
    if arguments.all:
        target = _write_fleet(arguments, Path(page) if page else _BUILD / NAME)
    elif arguments.prefix:
        folder = native_folder(*arguments.prefix)
        facts = prefix_data.gather(folder)
        if not page:
            access.require_writable(folder.root, "Name a file of yours by --output.")
        target = _written(render(facts), Path(page) if page else folder.page)
    else:
        matrix.read_name(arguments)
        target = write(context.built(arguments, context.resolve_plan(arguments)), page)
    print_line(f"report: {target} ({target.stat().st_size / 1e3:.0f} kB)")


def _refuse(arguments: Namespace) -> None:
    """Raise `UsageError` unless the arguments name one image, one prefix, or all."""
    prefixes = min(len(arguments.prefix), 0 if arguments.all else 2)
    if arguments.all + bool(arguments.site) + prefixes != 1:
        fix = "sifwright report SITE [IMAGE], report --prefix DIR, or report --all [--prefix DIR]…"
        raise UsageError.of("name a site, or one prefix, or give --all", fix=fix)


def write(output: ImageFolder, page: str) -> Path:
    """Write the page of the image in this folder, there or where `page` says; returns where.

    Raises `UsageError` if the image cannot be read, `MachineError` if there is no writing.
    """
    return _written(render(gather(output)), Path(page) if page else output.folder / NAME)


def _write_fleet(arguments: Namespace, target: Path) -> Path:
    now = datetime.now(UTC)
    catalog = context.definitions(arguments)
    prefixes = [without_link(NativeFolder(Path(prefix).absolute())) for prefix in arguments.prefix]
    states = list(_states(catalog, arguments, now))
    states += [prefix_state(folder, partial(_native_plan, catalog), now) for folder in prefixes]
    for state in states:
        if state.state not in (MISSING, REFUSED):
            tests = f"tests: {state.tested}, " if state.tested else ""
            name = state.prefix or f"{state.site} {state.image}"
            why = f": {state.why}" if state.why else ""
            print_line(f"{name}: {state.state} ({tests}{state.days} days old){why}")
    if target.parent == _BUILD:
        _BUILD.mkdir(exist_ok=True)
    return _written(render_fleet(states, f"{now:%Y-%m-%d}"), target)


def _states(catalog: Catalog, arguments: Namespace, now: datetime) -> Iterator[ImageState]:
    built = {path.parent for path in _BUILD.glob("*/*/record.json")}
    folders = {_BUILD / site / image for site in catalog.sites for image in catalog.images}
    for folder in sorted(folders | built):
        plan = partial(_plan, catalog, arguments, folder, is_built=folder in built)
        image, _ = matrix.split_name(folder.name)
        yield image_state(ImageFolder(folder=folder, name=image), plan, now)


def _native_plan(catalog: Catalog, version: InstalledVersion) -> Plan:
    """Return the plan of an installed version as it is now."""
    site = get_or_suggest(catalog.sites, version.text("site"), "site")
    catalog = with_env_manager(catalog, site, version.text("env_manager"))
    settings = [str(setting) for setting in version.entry.get("settings", ())]
    prefix = str(version.folder)
    return resolve(catalog, site.name, version.text("image"), settings, prefix=prefix)


def _plan(catalog: Catalog, arguments: Namespace, folder: Path, *, is_built: bool) -> Plan:
    """Return the plan as it is now; only for a built image, its base image is looked at."""
    site, (image, values) = folder.parent.name, matrix.split_name(folder.name)
    if is_built:
        catalog = context.with_extension(catalog, arguments, site, image)
        catalog = context.with_image(catalog, arguments, site, image)
    # An image of `build --matrix` has values that the definitions do not name.
    settings = matrix.recorded_settings(folder) if values else ()
    return resolve(catalog, site, image, settings)


def _written(text: str, target: Path) -> Path:
    if target.is_dir() or not target.parent.is_dir():
        message = "is a folder" if target.is_dir() else "is in a folder that is not there"
        raise MachineError.of(message, where=str(target), fix="Name a file with --output.")
    with name_folder_in_errors(target.parent, "Free some, or name another file with --output."):
        files.write(target, text.encode("utf-8", "backslashreplace"), mode=0o644)
    return target
