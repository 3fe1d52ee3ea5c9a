"""The interface of the engines that run steps, and what they make."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from sifwright.images.contents.inventory import Inventory
from sifwright.plan.source_digest import SourceDigest

Result = TypeVar("Result")
Finished = TypeVar("Finished")


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """An image that no user sees yet: `image.sif` of a build's folder, or an image of an engine.

    `keys` has the key of each layer's result, `used` the sources of all steps. `facts` are entries
    of the record, `files` are texts to publish beside the image.
    """

    keys: Mapping[str, str]
    used: Sequence[SourceDigest]
    facts: Mapping[str, object]
    files: Mapping[str, str] = field(default_factory=dict)


class DamagedResultError(Exception):
    """A cached result was damaged and has been dropped: its step runs again."""


class StepEngine(Protocol[Result]):
    """Runs the steps of one plan and makes an image of their results.

    It is opened as a context; at its end, everything that only this build needed is removed.
    """

    def run(self, number: int, below: Sequence[Result]) -> Result:
        """Return the result of a step on the results below it, cached or made now.

        The first step begins with the base image. Raises `BuildError` if the step fails.
        """

    def finish(self, results: Sequence[Result]) -> Artifact:
        """Assemble the results of all steps to an image."""

    def installed(self, artifact: Artifact) -> Inventory:
        """Return what is installed in the image; raises `BuildError` if that cannot be read."""

    def test(self, artifact: Artifact, layers: Sequence[str] | None) -> int:
        """Run the tests of these layers, or of all; return the exit status."""

    def name(self, artifact: Artifact) -> None:
        """Give the published image its name."""


def run_steps(
    engine: StepEngine[Result], count: int, finish: Callable[[Sequence[Result]], Finished]
) -> Finished:
    """Run the first steps, and finish with their results; begin again if one was damaged."""
    while True:
        results: list[Result] = []
        with suppress(DamagedResultError):
            for number in range(count):
                results.append(engine.run(number, results))
            return finish(results)
