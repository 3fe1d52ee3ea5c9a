"""Plans of installations on the host: layer `host` in place of the base, the site's software."""

import json
from collections.abc import Iterator
from dataclasses import replace

from sifwright.catalog.model import Catalog, Image, ImageSlot, Layer, Site
from sifwright.catalog.site import HostSoftware
from sifwright.errors import PlanError, Problem
from sifwright.plan.select_layers import why_not_suitable

# The layer that stands for the host.
HOST = "host"
# The layers of Python environments, by the words of native.env-manager and --env-manager.
ENV_MANAGERS = {"venv": "python-venv", "conda": "conda"}
# Layers ask for the package manager of an image; on a host, the site has its packages.
_PACKAGE_MANAGER = "apt"


def native_catalog(catalog: Catalog, site: Site, image: Image) -> Catalog:
    """Return the catalog with the image as it is installed on the site's host.

    Layers of software that the host provides are left out. The site's manager of environments makes
    the Python environment. Raises `PlanError` if the site has no facts of its host, or a layer can
    be installed in images only.
    """
    if site.native is None:
        message = f"the file of site '{site.name}' does not say what its host provides"
        fix = "Add native.provides with the site's compilers, MPI and toolkits, and its source."
        raise PlanError.of(message, where=f"defs/sites/{site.name}.yaml", fix=fix)
    host = catalog.layers[HOST]
    host = replace(host, provides=(*host.provides, *site.native.provides))
    slots = list(_slots(catalog, image, site.native))
    if problems := [*_python_problem(catalog, image), *_problems(catalog, image, slots)]:
        raise PlanError(*problems)
    layers = {name: _without_packages(layer, site) for name, layer in catalog.layers.items()}
    image = replace(image, layers=(ImageSlot(choices=(HOST,)), *slots))
    images = {**catalog.images, image.name: image}
    return replace(catalog, layers={**layers, HOST: host}, images=images)


def with_env_manager(catalog: Catalog, site: Site, manager: str) -> Catalog:
    """Return the catalog with that manager of environments for the site; "" is the site's own."""
    if not site.native or manager not in ENV_MANAGERS:
        return catalog
    site = replace(site, native=replace(site.native, env_manager=manager))
    return replace(catalog, sites={**catalog.sites, site.name: site})


def build_key(site: Site) -> str:
    """Return the modules and variables of the site that steps run with: part of every step's id."""
    modules, native = site.modules, site.native
    loaded = [modules.init, modules.purge, modules.host, modules.library_path]
    own = [native.modules, list(native.environment.items())] if native else []
    return json.dumps([*loaded, *own])


def _slots(catalog: Catalog, image: Image, host: HostSoftware) -> Iterator[ImageSlot]:
    """Yield the slots behind the base; a slot of something provided stays empty."""
    for slot in image.layers:
        layers = [catalog.layers[name] for name in slot.choices]
        if any(layer.bootstrap for layer in layers):
            continue
        words = {word for layer in layers for word in layer.provides}.intersection(host.provides)
        skip = (*slot.skip_if_provided, *sorted(words))
        managers = ENV_MANAGERS.values()
        manager = ENV_MANAGERS[host.env_manager]
        choices = tuple(manager if name in managers else name for name in slot.choices)
        yield replace(slot, choices=choices, skip_if_provided=skip)


def _python_problem(catalog: Catalog, image: Image) -> Iterator[Problem]:
    """Report an image with the Python of its base: a host has no such layer."""
    for slot in image.layers:
        for layer in map(catalog.layers.__getitem__, slot.choices):
            if layer.bootstrap and "python" in layer.provides:
                managers = " or ".join(f"'{name}'" for name in ENV_MANAGERS.values())
                message = f"layer '{layer.name}', which has its Python, can be in images only"
                fix = f"Take an image with layer {managers}, such as pytorch."
                yield Problem(where=f"image '{image.name}'", what=message, fix=fix)


def _problems(catalog: Catalog, image: Image, slots: list[ImageSlot]) -> Iterator[Problem]:
    for slot in slots:
        layers = [catalog.layers[name] for name in slot.choices]
        if slot.skip_if_provided or slot.optional or any(layer.native for layer in layers):
            continue
        names = " or ".join(f"layer '{layer.name}'" for layer in layers)
        words = ", ".join(word for x in layers for word in x.provides)
        message = f"{names} can be installed in images only"
        fix = f"Take another image, or name the site's modules of it: native.provides: {words}."
        yield Problem(where=f"image '{image.name}'", what=message, fix=fix)


def _without_packages(layer: Layer, site: Site) -> Layer:
    """Return the layer for a host; one that is for images only suits no site."""
    only_in_images = not (layer.native or why_not_suitable(layer.suits, site))
    suits = {"vendor": ()} if only_in_images else layer.suits
    requires = tuple(need for need in layer.requires if need.name != _PACKAGE_MANAGER)
    return replace(layer, suits=suits, requires=requires)
