"""Facts of an image for its installation: versions, layers, and missing parts."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sifwright.catalog.pmi import ImageMpi, mpi_of_facts
from sifwright.plan.plan_file import PlanFacts
from sifwright.plan.tested_builds import Untested

NAME = "PyTorch"
_CPU = "cpu"


@dataclass(frozen=True, kw_only=True, slots=True)
class InstalledImage:
    """`stack` is the stack of torch: cpu, cuda-12.8 or rocm-7.0.2. `date` is YYYYMMDD.

    An image of ours has its name in `image`, and in `plan` the id of its plan. `untested` are its
    layers that no test of ours builds like this. `plugin` is the release of NCCL's network plugin.
    `mpi` is known of our images only. `with_conda`: a module has to activate the image's Python
    environment. `needs_site`: the image lacks the site's environment.
    """

    torch: str
    python: str
    stack: str
    date: str
    image: str = ""
    plan: str = ""
    layers: tuple[str, ...] = ()
    untested: Untested = field(default_factory=Untested)
    plugin: str = ""
    mpi: ImageMpi | None = None
    with_conda: str = ""
    needs_site: bool = False

    @property
    def suffix(self) -> str:
        """Return the version suffix of the easyconfig, in the form of LUMI's."""
        kind = self.image.removeprefix("pytorch").strip("-")
        words = [self.stack, "python", self.python, kind, "singularity", self.date]
        return "-" + "-".join(filter(None, words))

    @property
    def version(self) -> str:
        """Return the version of the module."""
        return self.torch + self.suffix

    @property
    def stem(self) -> str:
        """Return the beginning of the names of an installation's files."""
        return f"{NAME}-{self.version}"


def of_plan(plan: PlanFacts, date: str) -> InstalledImage:
    """Return the facts of an image that is, or will be, built by this plan."""
    return InstalledImage(
        torch=plan.facts["torch"],
        python=plan.facts["python"],
        stack=_stack(plan),
        date=date,
        image=plan.image,
        plan=plan.id,
        layers=tuple(_layers(plan)),
        plugin=plan.facts.get("plugin", ""),
        mpi=mpi_of_facts(plan.facts, f"image {plan.image}"),
        needs_site=not any(step.layer == "run-scripts" for step in plan.steps),
    )


def _stack(plan: PlanFacts) -> str:
    for name in ("rocm", "cuda"):
        version = plan.facts.get(f"torch-{name}") or plan.facts.get(name, "")
        if version:
            return f"{name}-{_release(plan, name, version)}"
    return _CPU


def _release(plan: PlanFacts, name: str, version: str) -> str:
    """Return ROCm's whole release if a layer names it (ROCm 7.0.2), and CUDA's minor one (12.8)."""
    versions = (step.options[name].text for step in plan.steps if name in step.options)
    whole = next((text for text in versions if text.startswith(f"{version}.")), "")
    return whole if whole and name == "rocm" else version


def _layers(plan: PlanFacts) -> Iterator[str]:
    for step in plan.steps:
        version = step.options.get("version")
        yield f"{step.layer} {version.text}" if version and version.text else step.layer
