"""A plan as frozen data: the layers of one image at one site, with all about them decided."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sifwright.catalog import image_name
from sifwright.catalog.model import Bootstrap, Image, Layer, LayerFile, Site, Value

NAME = re.compile(r"\{([a-z0-9-]+)\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class StepSource:
    """One version of a source. `digest` is empty where no pin is known yet."""

    name: str
    kind: Literal["git", "archive", "pip"]
    url: str
    ref: str
    version: str
    digest: str
    submodules: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A completely decided layer. `id` covers every step before it, too."""

    layer: Layer
    options: Mapping[str, Value]
    files: tuple[LayerFile, ...]
    sources: tuple[StepSource, ...]
    id: str

    @property
    def header(self) -> dict[str, str]:
        """Return the header as layer and options give it; empty values are the machine's."""
        return {line.keyword: self._value(line) for line in self.layer.bootstrap}

    def filled(self, text: str) -> str:
        """Return the text with the values of options in place of their names in braces."""
        return NAME.sub(lambda match: self.options[match[1]].text, text)

    def packages(self) -> Iterator[tuple[str, str]]:
        """Yield what pip installs: requirements with their versions, and the layer's extra index.

        A package is left out if an option in its requirement is empty.
        """
        for download in self.layer.downloads:
            if download.pip and all(self.options[name].text for name in NAME.findall(download.pip)):
                yield self.filled(download.pip), self.filled(download.index)

    def _value(self, line: Bootstrap) -> str:
        if line.literal or not line.option:
            return line.literal or ""
        value = self.options[line.option].text
        kind, name = image_name.split(value) if line.image_part else ("", "")
        return {"kind": kind, "name": name}.get(line.image_part, value)


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedLayer:
    """An optional layer that does not suit the site."""

    layer: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Plan:
    """A completely decided image; `id` is the id of the last step.

    `versions` are the tables that decided it. A plan equals itself only, so texts of it are cached.
    """

    site: Site
    image: Image
    steps: tuple[Step, ...]
    facts: Mapping[str, str]
    left_out: tuple[SkippedLayer, ...] = ()
    versions: Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]] = field(
        default_factory=dict
    )

    @property
    def id(self) -> str:
        return self.steps[-1].id

    @property
    def has_run_scripts(self) -> bool:
        return any("run-scripts" in step.layer.provides for step in self.steps)

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables that layers set, without the actions of their rules."""
        return {rule.name: rule.value for step in self.steps for rule in step.layer.env}

    def step(self, layer: str) -> Step | None:
        """Return the step of a layer; None if the image is without it."""
        return next((step for step in self.steps if step.layer.name == layer), None)

    def declared_bytes(self, step: Step) -> int:
        """Return the bytes that a layer and its facts name; see schemas/layer.json."""
        facts = (self.facts.get(name, "") for name in step.layer.facts if name.endswith("-mb"))
        return (step.layer.disk_mb + sum(int(text) for text in facts if text.isdecimal())) * 10**6
