"""Say which builds of a plan's layers the tests of sifwright have made, and to which depth."""

from dataclasses import dataclass
from operator import attrgetter

from sifwright.catalog.layer_builds import LayerBuild
from sifwright.catalog.model import Layer
from sifwright.plan.model import Plan, Step

_DEPTHS = ("compiled", "imported", "ran on CPUs", "ran on GPUs")


@dataclass(frozen=True, kw_only=True, slots=True)
class Untested:
    """Layers of a plan: those that no test builds, and those that tests build otherwise only."""

    never: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


def targets(layer: Layer) -> str:
    """Return the soonest make target of each vendor's builds; cpu is for sites without GPUs.

    It is never without a build, and - where the layer's header does not say.
    """
    if layer.built is None:
        return "-"
    soonest = {
        build.vendor: build.by for build in sorted(layer.built, key=attrgetter("by"), reverse=True)
    }
    vendors: dict[str, list[str]] = {}
    for vendor, by in sorted(soonest.items()):
        vendors.setdefault(by.removeprefix("make "), []).append(vendor)
    return ", ".join(f"{by} ({' '.join(vendors[by])})" for by in sorted(vendors)) or "never"


def describe(build: LayerBuild) -> str:
    """Return a build in one line."""
    kind = " ".join(filter(None, dict.fromkeys((build.vendor, build.variant, build.processor))))
    tried = f"{build.depth} on {build.machine} ({build.date})"
    return f"{build.by}: {kind} on {build.base}, {tried}: {build.what}"


def deepest_build(plan: Plan, step: Step) -> LayerBuild | None:
    """Return the build of the step's layer for such a site, base and variant; None without one."""
    variant = step.options.get("variant")
    wanted = (
        *map(plan.site.fact, ("vendor", "processor")),
        plan.steps[0].layer.name,
        variant.text if variant else "",
    )
    alike = (
        build
        for build in step.layer.built or ()
        if (build.vendor, build.processor, build.base, build.variant) == wanted
    )
    return max(alike, key=lambda build: _DEPTHS.index(build.depth), default=None)


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
