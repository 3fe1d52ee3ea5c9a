"""The image of an extension: an image of defs/ with a layer of packages at its end."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name, parse_wheel_filename

from sifwright.catalog.model import Catalog, Download, Image, ImageSlot, LayerFile
from sifwright.errors import PlanError, Problem, UsageError
from sifwright.extend.read_requirements import ParsedRequirement, Requirements
from sifwright.plan.model import Step
from sifwright.plan.resolve import get_or_suggest, resolve
from sifwright.system.terminal import first_names

LAYER, CONDA = "python-packages", "conda"
_SHOWN = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Extension:
    """`image` is the one that `name` has all layers of."""

    name: str
    image: str
    requirements: Requirements


def extended(catalog: Catalog, extension: Extension, held: frozenset[str]) -> Catalog:
    """Return the catalog with the extended image and its layer.

    `held` are the packages that no layer replaces: see `check`.
    """
    base = get_or_suggest(catalog.images, extension.image, "image")
    if any(LAYER in entry.choices for entry in base.layers):
        message = f"image '{base.name}' has packages on top already"
        fix = "Name all of them in one file, and extend the image below."
        raise UsageError.of(message, fix=fix)
    layer = get_or_suggest(catalog.layers, LAYER, "layer")
    own = replace(
        layer,
        files=(*layer.files, *_files(extension.requirements)),
        downloads=tuple(_downloads(extension.requirements, held)),
    )
    names = [item.requirement.name for item in extension.requirements.wanted]
    on_top = first_names(names or ["packages of conda"], _SHOWN)
    image = replace(
        base,
        name=extension.name,
        description=f"{base.name} with {on_top}",
        layers=(
            *_with_conda(base, extension.requirements.conda).layers,
            ImageSlot(choices=(LAYER,), options={}),
        ),
    )
    return replace(
        catalog,
        images={**catalog.images, image.name: image},
        layers={**catalog.layers, layer.name: own},
    )


def _with_conda(image: Image, options: Mapping[str, str]) -> Image:
    """Return the image with these options of its layer conda."""
    slots = [
        replace(slot, options={**slot.options, **options}) if CONDA in slot.choices else slot
        for slot in image.layers
    ]
    return replace(image, layers=tuple(slots)) if options else image


def check(
    catalog: Catalog, site: str, extension: Extension, settings: Sequence[str]
) -> frozenset[str]:
    """Return the packages that the image keeps at their versions.

    Raises `PlanError` for requirements that ask for another version of one of these.
    """
    plan = resolve(extended(catalog, extension, frozenset()), site, extension.name, settings)
    held = dict(held_versions(plan.facts, plan.steps[:-1]))
    if problems := list(_replacements(extension.requirements.wanted, held)):
        raise PlanError(*problems)
    return frozenset(held)


def _replacements(
    wanted: Sequence[ParsedRequirement], held: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield requirements that would replace a package of the image."""
    for item in wanted:
        asked, name = item.requirement, canonicalize_name(item.requirement.name)
        version = held.get(name)
        if version and (asked.url or not asked.specifier.contains(version, prereleases=True)):
            own = f"the image's {name} {version}, which layers below were built for"
            fix = "Leave it out, or set another version below it: --set LAYER.OPTION=VALUE."
            yield Problem(where=item.where, what=f"{asked} would replace {own}", fix=fix)


def held_versions(facts: Mapping[str, str], steps: Sequence[Step]) -> Iterator[tuple[str, str]]:
    """Yield the content of the image's constraint file: torch and its companion builds."""
    if torch := facts.get("torch"):
        yield "torch", torch
    for step in steps:
        for requirement, _ in step.packages():
            name, _, version = requirement.partition("==")
            if "+" in version:
                yield canonicalize_name(name), version


def _files(requirements: Requirements) -> Iterator[LayerFile]:
    for name, text in (
        ("requirements.txt", requirements.text),
        ("constraints.txt", requirements.constraints_text),
        ("locked.txt", _locked(requirements)),
    ):
        if text or (requirements.is_locked and name == "requirements.txt"):
            yield LayerFile.of_text(f"files/{name}", text)


def _locked(requirements: Requirements) -> str:
    """Return what the build compares with what is installed: packages, and those of conda."""
    if not requirements.is_locked:
        return ""
    conda = requirements.conda
    names = [urlsplit(url).path.rpartition("/")[2] for url in conda.get("explicit", "").split()]
    files = [name.removesuffix(".conda").removesuffix(".tar.bz2") for name in names]
    files += [name.replace("=", "-") for name in conda.get("packages", "").split()]
    lines = [*map(_exact, requirements.wanted), *(f"conda {name}" for name in files)]
    return "".join(f"{line}\n" for line in sorted(lines))


def _exact(item: ParsedRequirement) -> str:
    """Return the requirement by its version, also if it names a wheel by its address."""
    requirement = item.requirement
    if not requirement.url:
        return str(requirement)
    name, version, _, _ = parse_wheel_filename(
        unquote(urlsplit(requirement.url).path.rpartition("/")[2])
    )
    marker = f" ; {requirement.marker}" if requirement.marker else ""
    return f"{name}=={version}{marker}"


def _downloads(requirements: Requirements, held: frozenset[str]) -> Iterator[Download]:
    """Yield the wheels of an index: checked before the build, and fetched ahead."""
    lists = [text for text in requirements.options if text.startswith("--no-binary")]
    names = [name for text in lists for name in text.partition("=")[2].split(",")]
    built = {name if name == ":all:" else canonicalize_name(name) for name in names}
    for wanted in requirements.wanted:
        requirement = wanted.requirement
        name = canonicalize_name(requirement.name)
        if not requirement.url and name not in held and not built & {name, ":all:"}:
            yield Download(what=name, pip=str(requirement))
