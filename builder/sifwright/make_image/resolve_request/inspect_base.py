"""Look at the image that a plan starts from, before the plan is made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sifwright.catalog import image_name
from sifwright.catalog.model import Catalog, Site
from sifwright.errors import PlanError, Problem, UsageError
from sifwright.host.network import registry
from sifwright.host.network.registry import Reference
from sifwright.images.contents.image_facts import ImageFacts
from sifwright.make_image.resolve_request import adapt_base, base_image, first_use
from sifwright.plan import base_request
from sifwright.plan.base_request import BaseRequest
from sifwright.plan.source_digest import SourceDigest
from sifwright.system.progress import Progress


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownBase:
    """The facts of the base: the folder `out` of all images, and the facts of a lock.

    `facts` returns these for the names of a site and an image; nothing without a lock.
    `follow_tag` takes the image that its tag names now, not the image of builds into the folder.
    `suffix` is the end of the name of the image's folder.
    """

    out: Path
    facts: Callable[[str, str], Mapping[str, str]]
    follow_tag: bool = False
    suffix: str = ""


def inspect_base(
    catalog: Catalog,
    names: tuple[str, str],
    settings: Sequence[str],
    known: KnownBase,
    progress: Progress,
) -> Catalog:
    """Return the definitions with the facts of the base image.

    `names` are those of the site and of the image. The same definitions where nothing is to be
    looked at. Raises `PlanError` for an image that no plan can start from, and all errors of
    the inspection.
    """
    site = catalog.sites.get(names[0])
    image = catalog.images.get(names[1] or (site.image if site else ""))
    if site is None or image is None:
        return catalog
    base = base_request.base_request(catalog, site, image, settings)
    if base is None or base_request.table_row(catalog, base) is not None:
        return catalog
    if (row := base_request.row_without_scheme(catalog, base)) is not None:
        return base_request.add_table_row(
            catalog, base, row, f"versions.yaml: {base.inspects.table}"
        )
    if facts_of_lock := known.facts(site.name, image.name):
        return base_request.with_facts(catalog, base, facts_of_lock)
    own = known.out / site.name / f"{image.name}{known.suffix}"
    folder = None if known.follow_tag else own
    facts = _facts(base, site, folder, progress)
    if problems := list(adapt_base.problems(facts, site, base.where)):
        raise PlanError(*problems)
    cells, size = adapt_base.table_row(facts), adapt_base.unpacked_mb(facts.bytes)
    return base_request.add_table_row(
        catalog, base, cells, adapt_base.origin(facts, base.name), size
    )


def _facts(base: BaseRequest, site: Site, folder: Path | None, progress: Progress) -> ImageFacts:
    from sifwright.images.sources.inspect_image import facts_of  # noqa: PLC0415  # most plans need none of it

    try:
        return facts_of(_source(base, site, folder), processor=site.processor, progress=progress)
    except UsageError as error:
        # The layer that wanted it comes first.
        told = ((": ".join(filter(None, (p.where, p.what))), p.fix) for p in error.problems)
        problems = (Problem(where=base.where, what=text, fix=fix) for text, fix in told)
        raise PlanError(*problems) from None


def _source(base: BaseRequest, site: Site, folder: Path | None) -> str:
    """Return its name there, with the digest that a build into this folder has used.

    A tag that has moved is refused by the build, not by looking: see `Inputs.asked`.
    """
    kind, name = image_name.split(base.name)
    if kind != image_name.REGISTRY:
        return base.name
    used = SourceDigest(
        layer=base.layer.name, source="From", ref=str(registry.parse(name)), digest=""
    )
    reference = base_image.redirected_reference(site, name)
    record = first_use.read_first_use(folder) if folder else {}
    digest = reference.digest or record.get(used.key) or _digest(reference)
    scheme = "http" if reference.http else image_name.REGISTRY
    return f"{scheme}://{reference.at(digest) if digest else reference}"


def _digest(reference: Reference) -> str:
    """Return the digest of the reference, or '' if the registry does not answer."""
    try:
        return registry.digest(reference)
    except registry.RegistryError:
        return ""
