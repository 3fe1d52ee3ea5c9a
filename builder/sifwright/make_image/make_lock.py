"""Make the lock of an image: build its steps, read what they installed, and look each up."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from sifwright import __version__
from sifwright.catalog import image_name
from sifwright.errors import MachineError
from sifwright.host.engines.apptainer import Apptainer
from sifwright.images.contents.inventory import Inventory
from sifwright.images.sif.copy_data import Range
from sifwright.make_image.attest import provenance
from sifwright.make_image.cache.store import CacheEntry
from sifwright.make_image.choose_engine import choose_stepwise
from sifwright.make_image.downloads.fetch_file import open_store
from sifwright.make_image.lock import collect_files, debian, find_wheels, git_packs, installed
from sifwright.make_image.lock.debian import Listing
from sifwright.make_image.lock_format.lock_file import Deb, Lock, LockedSource, Rpm, Unlocked, Wheel
from sifwright.make_image.pack_layers.pack import SQUASHFS
from sifwright.make_image.prepare_build import prepare_build
from sifwright.make_image.resolve_request.base_image import BaseImage
from sifwright.make_image.resolve_request.build_request import BuildRequest
from sifwright.make_image.run_steps.apptainer_engine import ApptainerSteps
from sifwright.make_image.run_steps.step_engine import run_steps
from sifwright.plan.model import Plan
from sifwright.system import processes
from sifwright.system.progress import Progress, Timer

_IMAGES = {image_name.REGISTRY, *image_name.LOCAL, "localimage"}
# The steps of Docker Engine run it in a container, without the machine's own.
_DEBOOTSTRAP = Deb(name="debootstrap", version="0", architecture="all", only_build=True)
_SECONDS = 10


def make_lock(request: BuildRequest, progress: Progress) -> Lock:
    """Run the steps that are missing, and lock what is in their results.

    Raises as `build_image` does, and `BuildError` for what cannot be had again.
    """
    refuse_unlockable(request.plan)
    count = len(request.plan.steps)
    with (
        Timer(progress) as timer,
        prepare_build(request, timer) as context,
        choose_stepwise(context, count - 1) as engine,
    ):
        results = run_steps(engine, count, list)
        timer.start("look up packages")
        lock = _lock(engine, results, progress)
        if request.options.follow_tag:
            context.inputs.remember_base()
        return lock


def refuse_unlockable(plan: Plan) -> None:
    """Raise `MachineError` for a layer that downloads what no lock holds."""
    for step in plan.steps:
        for download in step.layer.downloads:
            if download.url and not download.machine:
                message = f"layer '{step.layer.name}' downloads from {download.what}"
                fix = "Lock an image without this layer."
                raise MachineError.of(f"{message}, which no lock holds", fix=fix)


def _lock(engine: ApptainerSteps, results: Sequence[CacheEntry], progress: Progress) -> Lock:
    context, plan, base = engine.context, engine.context.plan, engine.context.base
    given = _inventory(results[:1]) if base.kind in _IMAGES else None
    image = _inventory(results)
    debs, listing = _debs(plan, results[-1], image, given)
    wheels, unlocked = _python(plan, image, given)
    if unlocked:
        names = ", ".join(f"{item.name} {item.version}" for item in unlocked)
        progress.note(f"no wheel in this machine's indexes is locked for: {names}")
    facts = {"bootstrap": base.kind, "reference": base.name, "digest": context.inputs.digest}
    return Lock(
        site=plan.site.name,
        image=plan.image.name,
        plan=plan.id,
        epoch=context.options.epoch,
        processor=plan.site.processor,
        python=plan.facts.get("python", ""),
        base={name: value for name, value in facts.items() if value},
        layers={step.layer.name: step.id for step in plan.steps},
        tools=_tools(engine.apptainer, base),
        wheels=wheels,
        debs=debs,
        rpms=tuple(
            Rpm(name=name, version=version, architecture=architecture)
            for name, version, architecture in sorted(installed.system_packages(image, "rpm"))
        ),
        archives=tuple(listing.archives),
        sources=tuple(_sources(plan, results)),
        unlocked=unlocked,
    )


def _inventory(results: Sequence[CacheEntry]) -> Inventory:
    paths = [entry.file(SQUASHFS) for entry in results]
    return installed.of_squashfs([Range(path=path, size=path.stat().st_size) for path in paths])


def _debs(
    plan: Plan, last: CacheEntry, image: Inventory, base: Inventory | None
) -> tuple[tuple[Deb, ...], Listing]:
    """Return the packages with what the archives say of each; `base` is what the image began as."""
    kept: Mapping[str, str] = last.manifest["kept"]
    texts = [text for name, text in kept.items() if name.endswith((".list", ".sources"))]
    used = debian.archives(texts, last.manifest["mirrors"])
    if "sources.list" not in kept:
        # The image's own: a build from the lock leads these addresses to its files.
        own = (text for path, text in image.sources.items() if path.startswith("etc/apt/"))
        used += debian.archives(own, {})
    present = installed.system_packages(image, "debian")
    given = installed.system_packages(base, "debian") & present if base else frozenset()
    # The first step may install updates over those of its base image.
    updates = plan.steps[0].options.get("updates")
    wanted = present if updates and updates.text == "true" else present - given
    tools = () if base else (_DEBOOTSTRAP,)
    names = {*(name for name, _, _ in wanted), *(tool.name for tool in tools)}
    listing = Listing.of(used, names, plan.site.processor) if names else Listing()
    debs = {key: listing.find(key) for key in wanted}
    debs |= {key: debian.of_base(key) for key in given if not debs.get(key)}
    debian.refuse_missing([key for key in sorted(wanted) if debs[key] is None], listing)
    newest = (listing.newest(tool) for tool in tools)
    return (
        *(deb for _, deb in sorted(debs.items()) if deb),
        *(tool for tool in newest if tool.sha256),
    ), listing


def _python(
    plan: Plan, image: Inventory, base: Inventory | None
) -> tuple[tuple[Wheel, ...], tuple[Unlocked, ...]]:
    """Return the packages that a wheel gives, and the others."""
    present = installed.python(image)
    given = installed.python(base).keys() & present.keys() if base else set()
    keys = sorted(present.keys() - given)
    offers = collect_files.wheel_index(plan).offers(keys) if keys else {}
    wheels, unlocked = [], [Unlocked(name=name, version=version) for name, version in sorted(given)]
    for name, version in keys:
        if offer := find_wheels.fitting(offers.get((name, version), ()), present[name, version]):
            wheels.append(offer.locked(name, version))
        else:
            unlocked.append(Unlocked(name=name, version=version))
    return tuple(wheels), tuple(unlocked)


def _sources(plan: Plan, results: Sequence[CacheEntry]) -> Iterator[LockedSource]:
    """Yield the sources with their pins, or what they were when they were used."""
    store = open_store()
    used = (source for entry in results for source in entry.sources)
    for layer, source, digest in provenance.sources(plan, used):
        if digest:
            locked = LockedSource(
                layer=layer,
                name=source.name,
                kind=source.kind,
                address=source.url,
                ref=source.ref if source.kind == "git" else source.version,
                digest=digest,
            )
            if source.submodules:
                yield from git_packs.with_submodules(locked, store)
            else:
                yield locked


def _tools(engine: Apptainer, base: BaseImage) -> dict[str, str]:
    """Return the versions of the programs that build; a locked build reports other ones."""
    from uv import find_uv_bin  # noqa: PLC0415  # only here

    tools = {
        "sifwright": __version__,
        engine.product: str(engine.version),
        "uv": _version([find_uv_bin(), "--version"]),
        "mksquashfs": _version(["mksquashfs", "-version"]),
    }
    if base.kind == "debootstrap":
        tools["debootstrap"] = _version(["debootstrap", "--version"])
    return {name: version for name, version in tools.items() if version}


def _version(command: list[str]) -> str:
    environment = {**os.environ, "PATH": processes.search_path()}
    answer = processes.capture(command, env=environment, timeout=_SECONDS)
    match = re.search(r"[0-9]+(\.[0-9]+)+[0-9A-Za-z.+~-]*", answer.stdout)
    return match[0] if match else ""
