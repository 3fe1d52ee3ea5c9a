"""What is installed of an image that was built here, and of one that is yet to be built."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import resources
from typing import TYPE_CHECKING, Any

from sifwright import digests, planfacts
from sifwright.errors import UsageError
from sifwright.inspection import packages
from sifwright.inspection.stack import Stack
from sifwright.inspection.text import shown
from sifwright.installation import facts, inspected
from sifwright.installation.bundle import as_json
from sifwright.render.document import plan_json
from sifwright.sif import image as sif_image
from sifwright.sif.format import DataType

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.installation.facts import ImageFacts
    from sifwright.model import Plan, Site
    from sifwright.output import Output

__all__ = ["DIRECTORY", "of_built", "of_other", "of_planned"]

# What stands for the packages of a user as long as they are in a folder; see its text.
DIRECTORY = "directory.squashfs"
_VENDORS = {"cuda": "nvidia", "rocm": "amd"}


def of_built(plan: Plan, output: Output) -> tuple[ImageFacts, dict[str, bytes]]:
    """The facts of the image that stands there, and the notes for share/.

    Raises `UsageError` if it is not what its record says, or not of this plan.
    """
    again = f"sifwright build {plan.site.name} {plan.image.name}"
    try:
        record = output.whole_record()
    except ValueError as error:
        raise UsageError.of(str(error), where=str(output.link), fix=again) from error
    planned = planfacts.parse(json.dumps(record))
    if planned.id != plan.id:
        raise UsageError.of(
            "the image is of another plan: definitions or options have changed since it was built",
            where=str(output.link),
            fix=f"{again}, or give the --set that it was built with; or name the SIF with --from",
        )
    return facts.of_plan(planned, _date(record)), {
        "record.json": output.record.read_bytes(),
        f"{output.name}.def": (output.folder / f"{output.name}.def").read_bytes(),
        "licences.txt": _licences(output.link),
        **_common(),
    }


def of_planned(plan: Plan, date: str) -> tuple[ImageFacts, dict[str, bytes]]:
    """The same before there is an image, which will have been built on that date."""
    text = plan_json(plan)
    return facts.of_plan(planfacts.parse(text), date), {"plan.json": text.encode(), **_common()}


def of_other(site: Site, sif: Path) -> tuple[ImageFacts, dict[str, bytes]]:
    """The same of an image that somebody else built."""
    found = inspected.inspect(sif)
    made_for = _VENDORS.get(found.stack.partition("-")[0], site.vendor)
    if made_for != site.vendor:
        raise UsageError.of(
            f"torch in it is for {found.stack}, and site '{site.name}' has vendor {site.vendor}",
            where=str(sif),
            fix="Give an image for the GPUs of the site.",
        )
    record = {"from": sif.name, "sif_fingerprint": digests.of_sif(sif), **asdict(found)}
    notes = {"record.json": as_json(record), "licences.txt": _licences(sif), **_common()}
    definition = _definition(sif)
    return found, {**notes, **({f"{sif.stem}.def": definition} if definition else {})}


def _definition(sif: Path) -> bytes:
    """The definition file that an image carries; the engine's of a build, most have one."""
    found = sif_image.read(sif)
    for one in found.descriptors:
        if one.data_type == DataType.DEFINITION:
            return sif_image.data(sif, one)
    return b""


def _licences(sif: Path) -> bytes:
    """The packages of an image and their licences, one on a line."""
    stack = Stack.of(sif)
    wanted = packages.sources(stack.tree, names_only=False)
    found = packages.find(stack.texts(wanted), stack.tree)
    rows = [(one.kind, one.name, one.version, one.licence) for one in found]
    head = "Packages of the image: kind, name, version, licence as the package states it.\n\n"
    return (head + "".join("\t".join(map(shown, row)) + "\n" for row in rows)).encode()


def _common() -> dict[str, bytes]:
    place = resources.files("sifwright") / "installation" / DIRECTORY
    return {DIRECTORY: place.read_bytes()}


def _date(record: dict[str, Any]) -> str:
    return str(record["built"])[:10].replace("-", "")
