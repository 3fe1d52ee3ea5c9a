"""Look at the image that a plan starts from, before the plan is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.build.request import adapt_base, base_image, first_use
from sifwright.catalog import image_name
from sifwright.errors import PlanError, Problem, UsageError
from sifwright.host.network import registry
from sifwright.plan import base_request

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sifwright.catalog.model import Catalog, Site
    from sifwright.host.network.registry import Reference
    from sifwright.images.contents.image_facts import ImageFacts
    from sifwright.plan.base_request import BaseRequest
    from sifwright.system.progress import Progress


def inspect_base(
    catalog: Catalog, names: tuple[str, str], settings: Sequence[str], out: Path, progress: Progress
) -> Catalog:
    """Return the definitions with the facts of the base image.

    `names` are those of the site and of the image, `out` is the folder of all images. The same
    definitions where nothing is to be looked at. Raises `PlanError` for an image that no plan can
    start from, and whatever looking raises.
    """
    site = catalog.sites.get(names[0])
    image = catalog.images.get(names[1] or (site.image if site else ""))
    base = base_request.base_request(catalog, site, image, settings) if site and image else None
    if (
        site is None
        or image is None
        or base is None
        or base_request.table_row(catalog, base) is not None
    ):
        return catalog
    if (row := base_request.row_without_scheme(catalog, base)) is not None:
        return base_request.add_table_row(
            catalog, base, row, f"versions.yaml: {base.inspects.table}"
        )
    facts = _facts(base, site, out / site.name / image.name, progress)
    if problems := list(adapt_base.problems(facts, site, base.where)):
        raise PlanError(*problems)
    cells, size = adapt_base.table_row(facts), adapt_base.disk_mb(facts)
    return base_request.add_table_row(
        catalog, base, cells, adapt_base.origin(facts, base.name), size
    )


def _facts(base: BaseRequest, site: Site, folder: Path, progress: Progress) -> ImageFacts:
    from sifwright.images.sources.inspect_image import facts_of  # noqa: PLC0415  # most plans need none of it

    try:
        return facts_of(_source(base, site, folder), processor=site.processor, progress=progress)
    except UsageError as error:
        raise PlanError(*(_of_base(base, problem) for problem in error.problems)) from None


def _source(base: BaseRequest, site: Site, folder: Path) -> str:
    """Its name, where it is found; by the digest that a build into this folder has used.

    A tag that has moved is refused by the build, not by looking: see `Inputs.asked`.
    """
    kind, name = image_name.split(base.name)
    if kind != image_name.REGISTRY:
        return base.name
    used = first_use.SourceDigest(
        layer=base.layer.name, source="From", ref=str(registry.parse(name)), digest=""
    )
    reference = base_image.redirected_reference(site, name)
    digest = reference.digest or first_use.read(folder).get(used.key) or _digest(reference)
    scheme = "http" if reference.http else image_name.REGISTRY
    return f"{scheme}://{reference.at(digest) if digest else reference}"


def _digest(reference: Reference) -> str:
    """Return the digest of the reference, or '' if the registry does not answer."""
    try:
        return registry.digest(reference)
    except registry.RegistryError:
        return ""


def _of_base(base: BaseRequest, problem: Problem) -> Problem:
    """Say which layer wanted it."""
    message = f"{problem.where}: {problem.what}" if problem.where else problem.what
    return Problem(where=base.where, what=message, fix=problem.fix)
