"""Build a published image once more, from nothing, to compare the two."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from sifwright.errors import PlanError, UsageError
from sifwright.make_image.lock_format.lock_file import Lock
from sifwright.make_image.resolve_request import first_use
from sifwright.make_image.resolve_request.build_request import (
    BuildOptions,
    BuildRequest,
    request_build,
)
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.plan.model import Plan
from sifwright.plan.plan_file import PlanFacts
from sifwright.system.tempdirs import temporary_root, workspace


def options_of(record: Mapping[str, Any]) -> BuildOptions:
    """Return the options that make the image of a record again; raise `UsageError`."""
    try:
        options = BuildOptions(layout=record["layout"], epoch=int(record["epoch"]))
    except KeyError as error:
        message = f"the record does not say {error.args[0]!r}"
        raise UsageError.of(message, fix="Build it again, then verify it.") from None
    return replace(options, engine=record.get("steps", "apptainer"), tests="untested", cached=False)


def refuse_other_lock(record: Mapping[str, Any], lock: Lock | None) -> None:
    """Raise `UsageError` unless this is the lock that the image was built from."""
    built, named = record.get("lock", ""), lock.digest if lock else ""
    if built == named:
        return
    if not built:
        message, fix = "the image was built without a lock", "Leave out --locked and --bundle."
    else:
        message = f"the image was built from the lock {built[:12]}, not from {named[:12]}"
        fix = "Name that lock with --locked FILE, or its bundle with --bundle FILE."
    raise UsageError.of(message, where="the lock", fix=fix)


def refuse_other_plan(plan: Plan, built: PlanFacts) -> None:
    """Raise `PlanError` if defs/ gives another plan than the image was built from."""
    if plan.id != built.id:
        raise PlanError.of(
            f"defs/ gives plan {plan.id[:12]} now, the image has plan {built.id[:12]}",
            where=f"{plan.site.name}/{plan.image.name}",
            fix="Check out what it was built from; 'sifwright diff' says what differs.",
        )


@contextmanager
def rebuilding(plan: Plan, options: BuildOptions, folder: Path) -> Iterator[BuildRequest]:
    """Yield the request of a build without the cache into a new folder, which is gone afterwards.

    The image's own `folder` has what was used the first time.
    """
    with workspace(temporary_root()) as scratch:
        output = ImageFolder(
            folder=scratch / plan.site.name / plan.image.name, name=plan.image.name
        )
        output.folder.mkdir(parents=True)
        with suppress(FileNotFoundError):
            shutil.copyfile(folder / first_use.FILE, output.folder / first_use.FILE)
        yield request_build(plan, output, options)
