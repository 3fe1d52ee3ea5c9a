"""Check the order of layers: the base is first, and each has before it what it requires."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace

from sifwright.catalog.model import Catalog, Image, Layer, Requirement, Site, Value
from sifwright.errors import Problem
from sifwright.plan.compatibility import find_second_providers
from sifwright.plan.select_layers import why_not_suitable
from sifwright.plan.sources import OFF

# The layers of an image, each with the values of its options.
Decided = Sequence[tuple[Layer, Mapping[str, Value]]]


def layer_problems(
    catalog: Catalog, layers: list[Layer], image: Image, site: Site
) -> Iterator[Problem]:
    """Yield what keeps these layers from going together in this order, which is the author's."""
    where = f"image '{image.name}'"
    provided: dict[str, str] = {}
    if not layers:
        message = f"no layer of it is for site '{site.name}'"
        yield Problem(where=where, what=message, fix="Add a base for that site.")
    for index, layer in enumerate(layers):
        if bool(layer.bootstrap) != (index == 0):
            yield _base_problem(catalog, layer, where, first=index == 0)
        if layer in layers[:index]:
            message = f"the image has layer '{layer.name}' twice"
            yield Problem(where=where, what=message, fix="Keep it once.")
            continue
        for need in _unmet(layer, provided, site):
            if not need.when:
                yield _missing(catalog, layer, need.name, where, layers[0])
        yield from find_second_providers(layer, provided, where)
        provided |= dict.fromkeys(layer.provides, layer.name)


def option_problems(catalog: Catalog, decided: Decided, image: Image, site: Site) -> list[Problem]:
    """Return what the options that are on require, and no earlier layer provides."""
    where = f"image '{image.name}'"
    provided: set[str] = set()
    problems = []
    for layer, options in decided:
        for need in _unmet(layer, provided, site):
            if need.when and is_on(need, options):
                problem = _missing(catalog, layer, need.name, where, decided[0][0])
                problems.append(replace(problem, where=f"{where}, {layer.name}.{need.when}"))
        provided.update(layer.provides)
    return problems


def is_on(need: Requirement, options: Mapping[str, Value]) -> bool:
    """Return whether the layer's options ask for it."""
    return not need.when or options[need.when].text not in OFF


def _unmet(layer: Layer, provided: Container[str], site: Site) -> Iterator[Requirement]:
    for need in layer.requires:
        if need.name not in provided and not why_not_suitable(need.suits, site):
            yield need


def _base_problem(catalog: Catalog, layer: Layer, where: str, *, first: bool) -> Problem:
    if not first:
        message = f"the base layer '{layer.name}' is not the first layer"
        return Problem(where=where, what=message, fix="Put it first and keep only one base.")
    bases = ", ".join(name for name, base in catalog.layers.items() if base.bootstrap)
    message = f"the first layer '{layer.name}' is not a base"
    return Problem(where=where, what=message, fix=f"Start with one of: {bases}.")


def _missing(catalog: Catalog, layer: Layer, need: str, where: str, image_base: Layer) -> Problem:
    base = image_base.inspects
    if base and need in base.provides:
        return Problem(
            where=where,
            what=f"layer '{layer.name}' requires '{need}', which the image lacks that"
            f" '{image_base.name}' starts from",
            fix=f"Name one that has it: --set {image_base.name}.{base.option}=…",
        )
    providers = [other.name for other in catalog.layers.values() if need in other.provides]
    return Problem(
        where=where,
        what=f"layer '{layer.name}' requires '{need}', which no layer before it provides",
        fix=f"Put one of these before it: {', '.join(providers)}."
        if providers
        else f"No layer provides '{need}'; mend 'requires' of '{layer.name}'.",
    )
