"""Take newer packages into a lock, and leave all others as they are."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from sifwright.catalog import image_name
from sifwright.catalog.schema import did_you_mean
from sifwright.errors import BuildError, UsageError
from sifwright.make_image.downloads.resolve_wheels import best_wheels
from sifwright.make_image.lock import collect_files, find_wheels
from sifwright.make_image.lock.debian import Listing
from sifwright.make_image.lock_format.lock_file import Lock, Wheel
from sifwright.plan.model import Plan

BASE, DEBIAN, PYTHON = "base", "debian", "python"


def is_of_base(lock: Lock, names: Sequence[str]) -> bool:
    """Return whether the base image is to be updated; all steps run again on another one.

    Raises `UsageError` if it cannot be, or if more is named.
    """
    if BASE not in names:
        return False
    fix = "Name the packages that you want, or nothing (--update) for everything."
    if len(names) > 1:
        message = "'base' stands alone: the steps on another base take today's packages"
        raise UsageError.of(message, where="--update", fix=fix)
    if lock.base["bootstrap"] != image_name.REGISTRY:
        message = "the image starts from no image of a registry"
        raise UsageError.of(message, where="--update base", fix=fix)
    return True


def update_lock(lock: Lock, plan: Plan, names: Sequence[str]) -> Lock:
    """Return the lock with today's versions of what is named, for a plan.

    Raises `UsageError` for a name that is not in the lock.
    """
    debs = {deb.name for deb in lock.fetched_debs}
    wheels = {wheel.name for wheel in lock.wheels}
    known = {BASE, DEBIAN, PYTHON, *debs, *wheels}
    for name in names:
        if name not in known:
            raise _unknown(lock, name, known)
    if some_debs := debs if DEBIAN in names else debs.intersection(names):
        listing = Listing.of(lock.archives, some_debs, lock.processor)
        new = (listing.newest(deb) if deb.name in some_debs else deb for deb in lock.debs)
        lock = replace(lock, debs=tuple(new), archives=tuple(listing.archives))
    if some_wheels := wheels if PYTHON in names else wheels.intersection(names):
        lock = replace(lock, wheels=_wheels(lock, plan, some_wheels))
    return replace(lock, plan=plan.id, layers={step.layer.name: step.id for step in plan.steps})


def _unknown(lock: Lock, name: str, known: Collection[str]) -> UsageError:
    layer = next((item.layer for item in lock.sources if item.name == name), "")
    if layer:
        message = f"'{name}' is a source: layer '{layer}' has its version, and pins.yaml its digest"
        fix = f"Choose another version by an option (sifwright show layer {layer}), and lock again."
        return UsageError.of(message, where="--update", fix=fix)
    fix = did_you_mean(name, sorted(known))
    return UsageError.of(f"the lock has no package '{name}'", where="--update", fix=fix)


def _wheels(lock: Lock, plan: Plan, names: Collection[str]) -> tuple[Wheel, ...]:
    """Return the wheels that uv resolves; what the layers ask for stays as they say."""
    asked = [requirement for step in plan.steps for requirement, _ in step.packages()]
    pinned = {canonicalize_name(Requirement(requirement).name) for requirement in asked}
    others = [wheel for wheel in lock.wheels if wheel.name not in pinned]
    free = [wheel.name for wheel in others if wheel.name in names]
    held = [f"{wheel.name}=={wheel.version}" for wheel in others if wheel.name not in names]
    answer = collect_files.wheel_index(plan).resolve([*asked, *free, *held], deps=True)
    if answer is None:
        message = f"no versions of {', '.join(sorted(names))} go with the rest of the lock"
        fix = "Update more of it (--update python), or all of it (--update)."
        raise BuildError.of(message, where="--update", fix=fix)
    resolved = best_wheels(answer, lock.python, lock.processor)
    offers = [(name, find_wheels.offer(wheel)) for name, wheel in resolved if wheel]
    new = {
        name: offer.locked(name, str(parse_wheel_filename(offer.file)[1]))
        for name, offer in offers
        if offer.sha256
    }
    kept = {wheel.name: wheel for wheel in lock.wheels}
    # A package that keeps its version keeps its file.
    both = kept.keys() & new.keys()
    same = {name: kept[name] for name in both if kept[name].version == new[name].version}
    return tuple(wheel for _, wheel in sorted((kept | new | same).items()))
