"""The facts of an image, wherever it is: found, read unless it was before, and told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sifwright.images.contents import pythons, systems
from sifwright.images.contents.image_facts import ImageFacts
from sifwright.images.sources import facts_cache, parse_name
from sifwright.images.sources.model import BadImage, SourceError
from sifwright.system.progress import Timer

if TYPE_CHECKING:
    from sifwright.images.sources.model import FoundImage, ImageContents, Source
    from sifwright.system.progress import Progress

_FIX = "Copy or build the image again; nothing was kept of this one."


def facts_of(source: str, *, processor: str, progress: Progress) -> ImageFacts:
    """Return the facts of an image, without starting or unpacking it.

    A known image is not read again, and if it is named by its digest, the registry is not asked.
    Raise `SifwrightError` for no such image, no answer, or contents that cannot be trusted.
    """
    parsed = parse_name.parse(source)
    try:
        with Timer(progress) as timer:
            facts = _facts(parsed, processor, timer)
    except BadImage as error:
        raise SourceError.of(str(error), where=source, fix=error.fix or _FIX) from error
    return replace(facts, source=source)


def _facts(source: Source, processor: str, timer: Timer) -> ImageFacts:
    from sifwright.images.sources import registry_image  # noqa: PLC0415  # files need no ssl

    asked = registry_image.key(source, processor) if source.kind == "docker" else ""
    if known := facts_cache.facts(asked):
        return known
    image = _found(source, processor)
    if known := facts_cache.facts(image.key):
        return known
    facts = _told(source, image.read(timer))
    facts_cache.remember(facts, asked, image.key)
    return facts


def _found(source: Source, processor: str) -> FoundImage:
    # Each needs libraries that the others have no use for.
    from sifwright.images.oci import oci_layout  # noqa: PLC0415
    from sifwright.images.sources import archive, docker_engine, registry_image, sif_image  # noqa: PLC0415

    finders = {
        "docker": registry_image.find,
        "oci": oci_layout.find,
        "oci-archive": archive.find,
        "docker-archive": archive.find,
        "docker-daemon": docker_engine.find,
        "sif": sif_image.find,
    }
    return finders[source.kind](source, processor)


def _told(source: Source, contents: ImageContents) -> ImageFacts:
    tree, config = contents.tree, contents.config
    system, version = systems.operating_system(tree)
    return ImageFacts(
        source=str(source),
        digest=contents.digest,
        processor=config.processor,
        os=system,
        os_version=version,
        libc=systems.libc(tree),
        environment=dict(config.environment),
        user=config.user,
        labels=dict(config.labels),
        pythons=pythons.pythons(tree, config.environment),
        plugins=systems.plugins(tree, config.environment),
        cuda=systems.cuda(tree, config.environment),
        rocm=systems.rocm(tree, config.environment),
        mpi=systems.mpi(tree),
        bytes=contents.bytes,
    )
