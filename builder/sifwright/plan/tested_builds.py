"""Say which builds of a plan's layers the tests of sifwright have made, and to which depth."""

from collections.abc import Iterable
from dataclasses import dataclass

from sifwright.catalog.layer_builds import BuildObstacle, LayerBuild
from sifwright.catalog.model import Layer
from sifwright.plan.model import Plan, Step

_DEPTHS = ("compiled", "imported", "ran on CPUs", "ran on GPUs")


@dataclass(frozen=True, kw_only=True, slots=True)
class Untested:
    """Layers of a plan: those that no test builds, and those that tests build otherwise only."""

    never: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


def depths(layer: Layer) -> str:
    """Return the greatest depth of each vendor's builds; cpu is for sites without GPUs.

    It is never without a build, and - where the layer's header does not say.
    """
    if layer.built is None:
        return "-"
    vendors: dict[str, list[str]] = {}
    for vendor in sorted({build.vendor for build in layer.built}):
        vendors.setdefault(_depth(layer.built, vendor), []).append(vendor)
    return ", ".join(f"{depth} ({' '.join(names)})" for depth, names in vendors.items()) or "never"


def _depth(builds: Iterable[LayerBuild], vendor: str) -> str:
    """Return the greatest depth for a vendor; builds with a stand-in count if there is no other."""
    deepest = max((build for build in builds if build.vendor == vendor), key=_rank)
    return f"{deepest.depth} with a stand-in" if deepest.stand_in else deepest.depth


def _rank(build: LayerBuild) -> tuple[bool, int]:
    return not build.stand_in, _DEPTHS.index(build.depth)


def describe(build: LayerBuild) -> str:
    """Return a build in one line."""
    options = (f"{name} {value}" for name, value in build.options.items())
    words = (build.vendor, build.variant, build.processor, *options)
    kind = " ".join(filter(None, dict.fromkeys(words)))
    base = f"{build.base} with a stand-in" if build.stand_in else build.base
    tried = f"{build.depth} on {build.machine} ({build.date})"
    return f"{build.by}: {kind} on {base}, {tried}: {build.what}"


def describe_obstacle(obstacle: BuildObstacle) -> str:
    """Return in one line for which GPUs and processor no test builds a layer, and why."""
    sites = " ".join(filter(None, (obstacle.vendor, obstacle.processor))) or "any"
    return f"{sites}: {obstacle.why}"


def deepest_build(plan: Plan, step: Step) -> LayerBuild | None:
    """Return the build of the step's layer for such a site, base and options; None without one.

    A build with a stand-in is none.
    """
    wanted = (
        *map(plan.site.fact, ("vendor", "processor")),
        plan.steps[0].layer.name,
        _variant(step),
    )
    alike = (
        build
        for build in step.layer.built or ()
        if (build.vendor, build.processor, build.base, build.variant) == wanted
        and not build.stand_in
        and all(step.options[name].text == value for name, value in build.options.items())
    )
    return max(alike, key=_rank, default=None)


def obstacle(plan: Plan, step: Step) -> BuildObstacle | None:
    """Return the first obstacle to a build of the step's layer for such a site."""
    vendor, processor = map(plan.site.fact, ("vendor", "processor"))
    obstacles = (
        item
        for item in step.layer.obstacles
        if item.vendor in ("", vendor) and item.processor in ("", processor)
    )
    return next(obstacles, None)


def _variant(step: Step) -> str:
    option = step.options.get("variant")
    return option.text if option else ""


def untested(plan: Plan) -> Untested:
    """Return the layers of a plan that no test has built like this."""
    names = [
        (step.layer.name, bool(step.layer.built))
        for step in plan.steps
        if step.layer.built is not None and not deepest_build(plan, step)
    ]
    return Untested(
        never=tuple(name for name, is_built in names if not is_built),
        elsewhere=tuple(name for name, is_built in names if is_built),
    )
