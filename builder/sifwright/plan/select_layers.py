"""Select the layers that an image has at a site, and check that its launchers start their MPI."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sifwright.catalog import pmi
from sifwright.catalog.model import Catalog, Image, ImageSlot, Layer, OptionValue, Site
from sifwright.errors import PlanError, Problem
from sifwright.plan.model import SkippedLayer

# The reason of a layer that no host can have.
IMAGES_ONLY = "it can be installed in images only"


@dataclass(frozen=True, kw_only=True, slots=True)
class Selected:
    """A layer of an image, and the options that the image gives it."""

    layer: Layer
    options: Mapping[str, OptionValue]


@dataclass(kw_only=True, slots=True)
class Selection:
    """The layers of an image at a site, in order, and what was left out."""

    slots: list[Selected] = field(default_factory=list)
    left_out: list[SkippedLayer] = field(default_factory=list)

    @property
    def layers(self) -> list[Layer]:
        return [slot.layer for slot in self.slots]


def select(catalog: Catalog, site: Site, image: Image) -> Selection:
    """Choose the layers that suit the site; raises `PlanError` if a place cannot be filled."""
    selection = Selection()
    problems: list[Problem] = []
    for entry in image.layers:
        problems += _fill(catalog, site, entry, selection)
    if problems:
        where = f"image '{image.name}' for site '{site.name}'"
        raise PlanError(*(replace(problem, where=where) for problem in problems))
    return selection


def why_not_suitable(suits: Mapping[str, tuple[str, ...]], site: Site) -> str:
    """Return why `suits` excludes a site; empty if it does not."""
    for name, values in suits.items():
        fact = site.fact(name)
        if not values:
            return IMAGES_ONLY
        if fact not in values:
            return f"it is for {name} {' or '.join(values)}, the site has {fact or 'none'}"
    return ""


def _unsuited(entry: ImageSlot, layer: Layer, site: Site) -> str:
    reason = why_not_suitable(entry.suits, site)
    return f"in this image {reason}" if reason else why_not_suitable(layer.suits, site)


def _fill(
    catalog: Catalog, site: Site, entry: ImageSlot, selection: Selection
) -> Iterator[Problem]:
    if there := _already_provided(entry, selection):
        selection.left_out += (SkippedLayer(layer=name, reason=there) for name in entry.choices)
        return
    candidates = [catalog.layers[name] for name in entry.choices]
    reasons = {layer.name: _unsuited(entry, layer, site) for layer in candidates}
    suited = next((layer for layer in candidates if not reasons[layer.name]), None)
    if suited:
        selection.slots.append(Selected(layer=suited, options=entry.options))
        return
    for name, reason in reasons.items():
        if entry.optional:
            selection.left_out.append(SkippedLayer(layer=name, reason=reason))
        else:
            message = f"layer '{name}' does not suit: {reason}"
            yield Problem(what=message, fix="Use another image, or another layer in this one.")


def _already_provided(entry: ImageSlot, selection: Selection) -> str:
    """Return the word that an earlier layer provides, so that the slot stays empty."""
    providers = (
        f"'{layer.name}' provides '{thing}'"
        for layer in selection.layers
        for thing in entry.skip_if_provided
        if thing in layer.provides
    )
    return next(providers, "")


def mpi_problems(
    site: Site, layers: Sequence[Layer], facts: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield why no launcher of the site can start the MPI of an image.

    A base image's MPI may stay unused. On one machine, the MPI in the container starts its ranks.
    """
    mpi = pmi.mpi_of_facts(facts, "")
    layer = next((layer.name for layer in layers if "mpi" in layer.provides), "")
    is_other = site.host_mpi or "container" not in site.run_in or site.launcher == "local"
    if not layer or not mpi.pmi or is_other:
        return
    offered = {name: site.offered_pmi(name) for name in site.launchers}
    if any(not spoken or any(pmi.common(spoken, mpi)) for spoken in offered.values()):
        return
    protocols = " and ".join(
        f"{name} speaks {' or '.join(spoken)}" for name, spoken in offered.items()
    )
    yield Problem(
        where=f"layer '{layer}'",
        what=f"it is started by {' or '.join(mpi.pmi)}, and {protocols} at site '{site.name}'"
        f" (launch.{site.launcher}.pmi): each rank would be alone, or abort",
        fix="Use an image with another MPI or without one, or correct what the launchers speak.",
    )
