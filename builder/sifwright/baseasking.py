"""Look at the image that a plan starts from, before the plan is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright import adapting, baseimage, basing, firstuse, imagename, registry
from sifwright.errors import PlanError, Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sifwright.basing import Base
    from sifwright.inspection.imagefacts import ImageFacts
    from sifwright.model import Catalog, Site
    from sifwright.progress import Progress
    from sifwright.registry import Reference

__all__ = ["with_base"]


def with_base(
    catalog: Catalog, names: tuple[str, str], settings: Sequence[str], out: Path, progress: Progress
) -> Catalog:
    """The definitions with what is in the image that this image of ours starts from.

    `names` are those of the site and of the image, `out` is the folder of all images. The same
    definitions where nothing is to be looked at. Raises `PlanError` for an image that no plan can
    start from, and whatever looking raises.
    """
    site = catalog.sites.get(names[0])
    image = catalog.images.get(names[1] or (site.image if site else ""))
    base = basing.found(catalog, site, image, settings) if site and image else None
    if site is None or image is None or base is None or basing.row(catalog, base) is not None:
        return catalog
    if (known := basing.known(catalog, base)) is not None:
        return basing.with_row(catalog, base, known, f"versions.yaml: {base.inspects.table}")
    facts = _facts(base, site, out / site.name / image.name, progress)
    if problems := list(adapting.problems(facts, site, base.where)):
        raise PlanError(*problems)
    cells, size = adapting.cells(facts), adapting.disk_mb(facts)
    return basing.with_row(catalog, base, cells, adapting.origin(facts, base.name), size)


def _facts(base: Base, site: Site, folder: Path, progress: Progress) -> ImageFacts:
    from sifwright.imagesource.facts import facts_of  # noqa: PLC0415  # most plans need none of it

    try:
        return facts_of(_source(base, site, folder), processor=site.processor, progress=progress)
    except UsageError as error:
        raise PlanError(*(_of_base(base, problem) for problem in error.problems)) from None


def _source(base: Base, site: Site, folder: Path) -> str:
    """Its name, where it is found; by the digest that a build into this folder has used.

    A tag that has moved is refused by the build, not by looking: see `Inputs.of`.
    """
    kind, name = imagename.split(base.name)
    if kind != imagename.REGISTRY:
        return base.name
    used = firstuse.Used(
        layer=base.layer.name, source="From", ref=str(registry.parse(name)), digest=""
    )
    reference = baseimage.located(site, name)
    digest = reference.digest or firstuse.read(folder).get(used.key) or _digest(reference)
    scheme = "http" if reference.http else imagename.REGISTRY
    return f"{scheme}://{reference.at(digest) if digest else reference}"


def _digest(reference: Reference) -> str:
    """What is looked at is what is remembered; empty without an answer, which looking tells."""
    try:
        return registry.digest(reference)
    except registry.RegistryError:
        return ""


def _of_base(base: Base, problem: Problem) -> Problem:
    """Say which layer wanted it."""
    what = f"{problem.where}: {problem.what}" if problem.where else problem.what
    return Problem(where=base.where, what=what, fix=problem.fix)
