"""A build as the checks of the machine look at it."""

from collections.abc import Mapping
from dataclasses import dataclass

from sifwright.host.engines.apptainer import Apptainer
from sifwright.make_image.forecast.forecast import BuildEstimate
from sifwright.make_image.resolve_request.base_image import BaseImage
from sifwright.plan.model import Plan


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedBuild:
    """A plan with its base, and the values that the machine gives to the first step.

    `engine` is the Apptainer that was found. `estimate` is None for an image of Docker, which
    takes nothing of ours. `first` is the first step that downloads. `is_cached`: the step cache
    is used.
    """

    plan: Plan
    base: BaseImage
    header: Mapping[str, str]
    engine: Apptainer | None = None
    estimate: BuildEstimate | None = None
    first: int = 0
    is_cached: bool = True
