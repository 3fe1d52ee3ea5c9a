"""Sources of a step at their versions, and the files of its chosen folder of patches."""

from collections.abc import Iterator, Mapping

from sifwright.catalog.model import Layer, LayerFile, Source, Value
from sifwright.catalog.schema import did_you_mean
from sifwright.errors import Problem
from sifwright.plan.model import StepSource

OFF = ("", "none", "false")
_PATCHES = "patches/"


def step_sources(layer: Layer, options: Mapping[str, Value]) -> Iterator[StepSource]:
    """Yield the version of each source that the options ask for (see `problems`)."""
    for source in _needed(layer, options):
        version = options[source.option].text
        if version in source.versions:
            yield StepSource(
                name=source.name,
                kind=source.kind,
                url=fill(source.url, version),
                ref=fill(source.ref, version),
                version=version,
                digest=source.versions[version].digest,
                submodules=source.submodules,
            )


def carried_files(layer: Layer, options: Mapping[str, Value]) -> tuple[LayerFile, ...]:
    """Return the layer's files; below patches/, only the folder that its option names."""
    if not layer.patches:
        return layer.files
    folder = f"{_PATCHES}{options[layer.patches].text}/"
    return tuple(
        file
        for file in layer.files
        if file.path.startswith(folder) or not file.path.startswith(_PATCHES)
    )


def source_problems(layer: Layer, options: Mapping[str, Value]) -> Iterator[Problem]:
    """Yield sources without a pin for their version, and a folder of patches that is not there."""
    for source in _needed(layer, options):
        value = options[source.option]
        if value.text not in source.versions:
            yield Problem(
                where=f"{layer.name}.{source.option}={value.text} ({value.origin})",
                what=f"there is no pin of source '{source.name}' for {value.text!r}",
                fix=f"{did_you_mean(value.text, source.versions)}"
                f" To add it: sifwright pins {layer.name} {source.name} {value.text} --add",
            )
    if layer.patches and options[layer.patches].text not in OFF:
        yield from _patch_problems(layer, options[layer.patches])


def _patch_problems(layer: Layer, value: Value) -> Iterator[Problem]:
    paths = [file.path for file in layer.files if file.path.startswith(_PATCHES)]
    folders = sorted({path.split("/")[1] for path in paths if path.count("/") > 1})
    if value.text not in folders:
        yield Problem(
            where=f"{layer.name}.{layer.patches}={value.text} ({value.origin})",
            what=f"layer '{layer.name}' has no folder patches/{value.text}",
            fix=f"{did_you_mean(value.text, folders)} Or apply none: 'none'.",
        )


def _needed(layer: Layer, options: Mapping[str, Value]) -> Iterator[Source]:
    for source in layer.sources:
        switched_off = source.when and options[source.when].text in OFF
        if not switched_off and options[source.option].text not in OFF:
            yield source


def fill(text: str, version: str) -> str:
    """Put a version, or the first two numbers of it, into an address or ref."""
    series = ".".join(version.split(".")[:2])
    return text.replace("{version}", version).replace("{series}", series)
