"""The interface of what runs steps: on a base, one by one, then finish and test.

`ImageEngine` makes an image. An installation on the host (`install/native`) is a `StepEngine`, too.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from sifwright.images.contents.inventory import Inventory
from sifwright.plan.source_digest import SourceDigest

Result = TypeVar("Result")
Product = TypeVar("Product")


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """An image that no user sees yet: `image.sif` of a build's folder, or an image of an engine.

    `keys` has the key of each step's result, `used` the sources of all steps. `facts` are entries
    of the record, `files` are texts to publish beside the image.
    """

    keys: Sequence[str]
    used: Sequence[SourceDigest]
    facts: Mapping[str, object]
    files: Mapping[str, str] = field(default_factory=dict)


class DamagedResultError(Exception):
    """A cached result was damaged and has been dropped: its step runs again."""


class StepEngine(Protocol[Result, Product]):
    """An engine that runs the steps of one plan, and makes an image or installation of them."""

    def run(self, number: int, below: Sequence[Result]) -> Result:
        """Return the result of a step on the results below it, cached or made now.

        The first step begins with the base image. Raises `BuildError` if the step fails.
        """

    def finish(self, results: Sequence[Result]) -> Product:
        """Make one thing of the results of all steps."""

    def test(self, product: Product, layers: Sequence[str] | None) -> int:
        """Run the tests of these layers, or of all; return the exit status."""


class ImageEngine(StepEngine[Result, Artifact], Protocol[Result]):
    """A step engine that makes an image of the results.

    It is opened as a context; at its end, everything that only this build needed is removed.
    """

    def installed(self, artifact: Artifact) -> Inventory:
        """Return what is installed in the image; raises `BuildError` if that cannot be read."""


def run_steps(
    engine: StepEngine[Result, Any], count: int, finish: Callable[[Sequence[Result]], Product]
) -> Product:
    """Run the first steps, and finish with their results; begin again if one was damaged."""
    while True:
        results: list[Result] = []
        with suppress(DamagedResultError):
            for number in range(count):
                results.append(engine.run(number, results))
            return finish(results)
