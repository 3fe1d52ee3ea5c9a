"""The builds of a layer by tests, and what its step takes of a node."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    """The share of a node that a step takes in a job: cores, memory in GB, and hours."""

    cores: int = 4
    memory_gb: int = 8
    hours: float = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerBuild:
    """A build of a layer by a test: `by` names the make target, `depth` how far it was tried.

    `vendor` and `processor` are the site's, `base` is the first layer. `variant` is the value of
    the layer's option `variant`, `options` has those of others that the build speaks for alone.
    `date` is YYYY-MM-DD. `machine` is the kind of machine. With `stand_in`, the tests served
    a base's image, an installer or a channel of conda of their own.
    """

    by: str
    vendor: str
    processor: str
    base: str
    depth: str
    date: str
    what: str
    variant: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    machine: str = "2 cores, no GPU"
    stand_in: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildObstacle:
    """The reason why no test builds a layer for sites with this vendor and processor.

    An empty vendor or processor is each.
    """

    why: str
    vendor: str = ""
    processor: str = ""
