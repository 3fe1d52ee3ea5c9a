"""Objects that a command line names: the catalog, a plan, and the folder of its image."""

from argparse import Namespace
from contextlib import suppress
from functools import partial
from pathlib import Path

from sifwright.catalog.load_catalog import load_catalog, load_part
from sifwright.catalog.model import Catalog
from sifwright.catalog.project_folder import project_folder
from sifwright.cli.options import locks, matrix
from sifwright.errors import PlanError, SifwrightError, UsageError
from sifwright.extend.saved_extension import with_known
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.make_image.resolve_request.inspect_base import KnownBase, inspect_base
from sifwright.plan.model import Plan
from sifwright.plan.resolve import resolve
from sifwright.system.os_errors import nearest_existing_parent
from sifwright.system.progress import JsonProgress, Progress, QuietProgress, TextProgress
from sifwright.system.step_file import with_step_file
from sifwright.system.terminal import console

_BUILD = "build"


def load(arguments: Namespace) -> Catalog:
    return with_image(definitions(arguments), arguments)


def definitions(arguments: Namespace) -> Catalog:
    """Load the catalog of the project."""
    project = project_folder(arguments.project)
    loaded = load_catalog(project / "defs", project)
    return with_extension(loaded, arguments, getattr(arguments, "site", ""))


def with_image(catalog: Catalog, arguments: Namespace, *names: str) -> Catalog:
    """Return the catalog with the facts of the base image, if a plan is made.

    `names` are those of the site and the image, unless the arguments have them.
    """
    site, image = names or (getattr(arguments, "site", ""), getattr(arguments, "image", ""))
    if getattr(arguments, "settings", None) is None or not site:
        return catalog
    known = KnownBase(
        out=Path(getattr(arguments, "output", "") or _BUILD),
        suffix=matrix.suffix(arguments),
        facts=partial(locks.base_facts, arguments),
        follow_tag=locks.follows_tag(arguments),
    )
    return inspect_base(
        catalog, (site, image), matrix.settings(arguments), known, progress_of(arguments)
    )


def with_extension(catalog: Catalog, arguments: Namespace, site: str, image: str = "") -> Catalog:
    """Return the catalog with the named image, if 'sifwright extend' has made it."""
    image = image or getattr(arguments, "image", "")
    # Some commands take a file as `output`.
    folders = {Path(getattr(arguments, "output", "") or _BUILD), Path(_BUILD)}
    for folder in sorted(folders):
        catalog = with_known(catalog, folder, site, image)
    return catalog


def resolve_plan(arguments: Namespace, part: Catalog | None = None) -> Plan:
    settings = matrix.settings(arguments)
    try:
        catalog = with_image(part, arguments) if part else load(arguments)
        return resolve(catalog, arguments.site, arguments.image, settings)
    except SifwrightError as error:
        raise matrix.named(error, arguments) from None


def plan_of_part(arguments: Namespace) -> Plan:
    """Return the plan from the files of its image alone, unless they have a mistake.

    `definitions` reports mistakes in all others, in four times the time.
    """
    project = project_folder(arguments.project)
    part = load_part(project / "defs", project, arguments.site, arguments.image or "")
    with suppress(PlanError, UsageError):  # with all definitions, they say more
        if part:
            return resolve_plan(arguments, part)
    return resolve_plan(arguments)


def output_of(arguments: Namespace, plan: Plan) -> ImageFolder:
    folder = Path(arguments.output)
    standing = nearest_existing_parent(folder)
    if not standing.is_dir():
        message = f"--output {arguments.output}: {standing} is no folder"
        raise UsageError.of(message, fix="Name a folder, which may be a new one.")
    image = plan.image.name
    own = folder / plan.site.name / f"{image}{matrix.suffix(arguments)}"
    return ImageFolder(folder=own, name=image)


def built(arguments: Namespace, plan: Plan) -> ImageFolder:
    """Return the folder of a built image; raises `UsageError` if there is no image."""
    output = output_of(arguments, plan)
    if not output.link.exists():
        fix = f"Build it: sifwright build {plan.site.name} {plan.image.name}"
        if hasattr(arguments, "date"):
            fix += ". Or give the date of a later build: --date YYYYMMDD"
        raise UsageError.of("there is no image yet", where=str(output.link), fix=fix)
    return output


def progress_of(arguments: Namespace) -> Progress:
    """Return what reports the steps, to a job's file as well."""
    return with_step_file(_reporter(arguments))


def _reporter(arguments: Namespace) -> Progress:
    # Commands that build nothing have no --quiet: their output is the answer.
    if getattr(arguments, "quiet", True):
        return QuietProgress()
    if arguments.json:
        return JsonProgress()
    return TextProgress(console, verbose=arguments.verbose)
