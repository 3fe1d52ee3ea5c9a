"""The state of all images and installations: built, tested, how old, stale, broken."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sifwright.errors import BuildError, SifwrightError
from sifwright.make_image.resolve_request.base_image import base_image_of
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.make_image.resolve_request.recorded_inputs import Inputs
from sifwright.plan.model import Plan
from sifwright.system import small_file

CURRENT, STALE, BROKEN, MISSING, REFUSED = "current", "stale", "broken", "not built", "no plan"


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageState:
    """The state of an image at a site; `why` says what is wrong, in one line.

    An installation on the host has a `prefix`.
    """

    site: str
    image: str
    state: str
    why: str = ""
    built: str = ""
    days: int | None = None
    tested: str = ""
    bytes: int = 0
    torch: str = ""
    prefix: str = ""


def image_state(output: ImageFolder, plan: Callable[[], Plan], now: datetime) -> ImageState:
    """Return the state of the image in a folder; `plan` makes the plan as it is now."""
    site, image = output.folder.parent.name, output.folder.name
    try:
        planned, why = plan(), ""
    except SifwrightError as error:
        planned, why = None, str(error).splitlines()[0]
    if not output.record.exists():
        state = MISSING if planned else REFUSED
        return ImageState(site=site, image=image, state=state, why=why)
    record = small_file.read_object(output.record)
    state, why = _verdict(output, record, planned, why)
    built = str(record.get("built", ""))
    return ImageState(
        site=site,
        image=image,
        state=state,
        why=why,
        built=built,
        days=days_since(built, now),
        tested=str(record.get("tested", "not all")),
        bytes=int(record.get("sif_bytes", 0)),
        torch=str(record.get("plan", {}).get("facts", {}).get("torch", "")),
    )


def _verdict(
    output: ImageFolder, record: Mapping[str, Any], plan: Plan | None, why: str
) -> tuple[str, str]:
    if damage := output.damage():
        return BROKEN, damage.splitlines()[0]
    if plan is None:
        return STALE, f"there is no plan of it any more: {why}"
    built = [step["id"] for step in record.get("plan", {}).get("steps", ())]
    reasons = [*changes(built, plan), *_moved_base(plan, output)]
    return (STALE, "; ".join(reasons)) if reasons else (CURRENT, "")


def changes(built: Collection[str], plan: Plan) -> Iterator[str]:
    """Yield the first layer with other scripts, options or pins now; `built` are step ids."""
    new = [step.layer.name for step in plan.steps if step.id not in built]
    if new:
        yield f"definitions, options or pins have changed: layer {new[0]}"
    elif len(built) > len(plan.steps):
        yield "it has a layer that the image no longer has"


def _moved_base(plan: Plan, output: ImageFolder) -> Iterator[str]:
    """Yield that the base image's tag leads elsewhere now; a registry that is away is not asked."""
    inputs = Inputs.recorded(base_image_of(plan), output.pins_folder)
    try:
        inputs.with_current_digest(lambda _note: None)
    except BuildError as error:
        yield str(error).splitlines()[0]
    except SifwrightError:
        return


def days_since(built: str, now: datetime) -> int | None:
    """Return the age in days, or None for no date."""
    try:
        return (now - datetime.fromisoformat(built).astimezone(UTC)).days
    except ValueError:
        return None
