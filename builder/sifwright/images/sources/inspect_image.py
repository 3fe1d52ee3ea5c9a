"""The facts of an image, wherever it is: found, read unless it was before, and told."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from typing import Any

from sifwright.errors import MachineError
from sifwright.images.contents import pythons, systems
from sifwright.images.contents.image_facts import ImageFacts, Plugin, Python, Torch
from sifwright.images.contents.image_tree import BadImage
from sifwright.images.model import FoundImage, ImageContents, Source, SourceError
from sifwright.images.sources import parse_name
from sifwright.system import cache_folder, fact_cache
from sifwright.system.progress import Progress, Timer

# The number changes when the same image would give other facts.
_FILE = "images-3.json"
_KEPT = 200
_FIX = "Copy or build the image again; nothing was kept of this one."


def facts_of(source: str, *, processor: str, progress: Progress) -> ImageFacts:
    """Return the facts of an image, without starting or unpacking it.

    A known image is not read again, and if it is named by its digest, the registry is not asked.
    Raise `SifwrightError` for no such image, no answer, or contents that cannot be trusted.
    """
    with refused(source), Timer(progress) as timer:
        return replace(_facts(parse_name.parse(source), processor, timer), source=source)


def contents_of(source: str, *, processor: str, progress: Progress) -> ImageContents:
    """Return what is read of an image, whether it is known or not. Raise as `facts_of` does."""
    with refused(source), Timer(progress) as timer:
        return _find_image(parse_name.parse(source), processor).read(timer)


@contextmanager
def refused(source: str) -> Iterator[None]:
    """Turn what is wrong with the contents of an image into a `SourceError` that names it."""
    try:
        yield
    except BadImage as error:
        raise SourceError.of(str(error), where=source, fix=error.fix or _FIX) from error


def _facts(source: Source, processor: str, timer: Timer) -> ImageFacts:
    from sifwright.images.sources import registry_image  # noqa: PLC0415  # files need no ssl

    registry_key = registry_image.key(source, processor) if source.kind == "docker" else ""
    if cached := _cached_facts(registry_key):
        return cached
    image = _find_image(source, processor)
    if cached := _cached_facts(image.key):
        return cached
    facts = _facts_of_contents(source, image.read(timer))
    _remember(facts, registry_key, image.key)
    return facts


def _find_image(source: Source, processor: str) -> FoundImage:
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


def _facts_of_contents(source: Source, contents: ImageContents) -> ImageFacts:
    tree, config = contents.tree, contents.config
    release = systems.release(tree)
    return ImageFacts(
        source=str(source),
        digest=contents.digest,
        processor=config.processor,
        os=release.get("ID", ""),
        os_version=release.get("VERSION_ID", ""),
        libc=systems.libc(tree),
        environment=dict(config.environment),
        unread_environment=config.unread,
        user=config.user,
        labels=dict(config.labels),
        pythons=pythons.pythons(tree, config.environment),
        plugins=systems.plugins(tree, config.environment),
        cuda=systems.cuda(tree, config.environment),
        rocm=systems.rocm(tree, config.environment),
        mpi=systems.mpi(tree),
        bytes=contents.bytes,
    )


def _cached_facts(key: str) -> ImageFacts | None:
    """Return the cached facts of the image with this key, or None."""
    values = fact_cache.read(_FILE).get(key) if key else None
    try:
        return _of_cache(values) if isinstance(values, dict) else None
    except (TypeError, KeyError, AttributeError):
        return None


def _remember(image_facts: ImageFacts, *keys: str) -> None:
    """Store the facts, if a cache exists or can be made."""
    with suppress(OSError, MachineError):
        cache_folder.make(cache_folder.root())
    fact_cache.add(_FILE, dict.fromkeys(filter(None, keys), asdict(image_facts)), _KEPT)


def _of_cache(values: Mapping[str, Any]) -> ImageFacts:
    pythons = tuple(
        Python(**{**item, "torch": Torch(**item["torch"]) if item["torch"] else None})
        for item in values["pythons"]
    )
    plugins = tuple(Plugin(**item) for item in values["plugins"])
    texts = {name: tuple(values[name]) for name in ("mpi", "unread_environment")}
    return ImageFacts(**{**values, **texts, "pythons": pythons, "plugins": plugins})
