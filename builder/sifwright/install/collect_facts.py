"""Collect the facts and files of an image for its installation: built, planned or foreign."""

import json
from dataclasses import asdict, replace
from pathlib import Path

from sifwright.catalog.model import Site
from sifwright.errors import UsageError
from sifwright.images.contents import packages
from sifwright.images.contents.layer_stack import LayerStack
from sifwright.images.sif import sif_file as sif_image
from sifwright.images.sif.fingerprint import measure
from sifwright.images.sif.format import DataType
from sifwright.install import inspect_foreign_image, installed_image
from sifwright.install.installed_image import InstalledImage
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.plan import plan_file
from sifwright.plan.model import Plan
from sifwright.plan.plan_file import PlanFacts, plan_json
from sifwright.plan.tested_builds import untested
from sifwright.system import small_file
from sifwright.system.terminal import escape_name

_VENDORS = {"cuda": "nvidia", "rocm": "amd"}


def from_built(plan: Plan, output: ImageFolder) -> tuple[InstalledImage, dict[str, bytes]]:
    """Return the facts of the published image, and the files for share/.

    Raise `UsageError` if the image differs from its record, or is not of this plan.
    """
    again = f"sifwright build {plan.site.name} {plan.image.name}"
    try:
        record = output.whole_record()
    except ValueError as error:
        raise UsageError.of(str(error), where=str(output.link), fix=again) from error
    planned = plan_file.parse_plan(json.dumps(record))
    if planned.id != plan.id:
        raise UsageError.of(
            "the image is of another plan: definitions or options have changed since it was built",
            where=str(output.link),
            fix=f"{again}, or give the --set that it was built with; or name the SIF with --from",
        )
    return _facts(plan, planned, str(record["built"])[:10].replace("-", "")), {
        "record.json": small_file.read_bytes(output.record),
        f"{output.name}.def": _definition(output.link),
        "licences.txt": _licences(output.link),
    }


def from_planned(plan: Plan, date: str) -> tuple[InstalledImage, dict[str, bytes]]:
    """Return the same for an image that will be built on that date."""
    text = plan_json(plan)
    return _facts(plan, plan_file.parse_plan(text), date), {"plan.json": text.encode()}


def from_foreign(site: Site, sif: Path) -> tuple[InstalledImage, dict[str, bytes]]:
    """Return the same for an image that sifwright did not build."""
    inspected = inspect_foreign_image.inspect(sif)
    vendor = _VENDORS.get(inspected.stack.partition("-")[0], site.vendor)
    if vendor != site.vendor:
        raise UsageError.of(
            f"its torch is for {inspected.stack}, and site '{site.name}' has vendor {site.vendor}",
            where=str(sif),
            fix="Give an image for the GPUs of the site.",
        )
    record = {
        "from": sif.name,
        **measure(sif).document,
        **asdict(inspected),
    }
    text = json.dumps(record, indent=1) + "\n"
    notes = {"record.json": text.encode(), "licences.txt": _licences(sif)}
    definition = _definition(sif)
    return inspected, {**notes, **({f"{sif.stem}.def": definition} if definition else {})}


def _facts(plan: Plan, planned: PlanFacts, date: str) -> InstalledImage:
    if "torch" not in planned.facts:
        raise UsageError.of(
            f"no layer of image '{planned.image}' provides torch, and the module is for PyTorch",
            where=f"defs/images/{planned.image}.yaml",
            fix="Name an image with torch: sifwright list images. This one needs no module:"
            " singularity exec IMAGE.sif COMMAND",
        )
    return replace(installed_image.of_plan(planned, date), untested=untested(plan))


def _definition(sif: Path) -> bytes:
    return sif_image.data_of(sif_image.read(sif), DataType.DEFINITION)


def _licences(sif: Path) -> bytes:
    """Return the packages of an image and their licences, one on a line."""
    stack = LayerStack.of(sif)
    wanted = packages.sources(stack.tree, names_only=False)
    listed = packages.find(stack.texts(wanted), stack.tree)
    rows = [(package.kind, package.name, package.version, package.licence) for package in listed]
    head = "Packages of the image: kind, name, version, licence as the package states it.\n\n"
    return (head + "".join("\t".join(map(escape_name, row)) + "\n" for row in rows)).encode()
