"""The MPI in a job's image, by the record beside the image, by its files, or by its plan."""

import json
import os
from pathlib import Path

from sifwright.catalog import pmi
from sifwright.catalog.model import Catalog, Image, Site
from sifwright.catalog.pmi import ImageMpi
from sifwright.errors import SifwrightError, quoted
from sifwright.images.sif.fingerprint import RECORD, known_record
from sifwright.launch import job_rules
from sifwright.launch.model import JobRequest
from sifwright.plan import plan_file
from sifwright.plan.resolve import resolve
from sifwright.system import small_file
from sifwright.system.progress import QuietProgress


def mpi(catalog: Catalog, site: Site, image: Image, request: JobRequest) -> ImageMpi:
    """Return the MPI of the ranks: that of the image which the job names, else of the built one.

    Without either, the plan tells. The image of the job's own environment ($SIF) cannot be known.
    With --host-mpi or without a container, the ranks have the MPI of the site. Cray's MPI has the
    PMI that is srun's default. An installation may have an MPI of its own.
    """
    on_host = job_rules.run_in(site, request) == "host"
    if on_host and request.environment and (own := of_environment(request.environment)):
        return own
    if request.host_mpi or on_host:
        texts = (pmi.NAMES[site.mpi],) if site.mpi in pmi.NAMES else ()
        return pmi.inspected_mpi(texts, catalog.versions.get("mpi", {}), f"site '{site.name}'")
    if request.modules and not request.sif:
        kind = "module" if len(request.modules) == 1 else "modules"
        source = f"the image of {kind} {', '.join(request.modules)}"
        return pmi.ImageMpi(name=pmi.UNKNOWN, source=source)
    sif = Path(request.sif or request.built_sif)
    if os.access(sif, os.F_OK):
        return of_record(sif) or _of_file(catalog, site, sif)
    if request.sif:
        return pmi.ImageMpi(name=pmi.UNKNOWN, source=f"{_shorten_path(sif)} (not on this machine)")
    facts = resolve(catalog, site.name, image.name, ()).facts
    return pmi.mpi_of_facts(facts, f"image '{image.name}' as planned")


def of_environment(environment: str) -> ImageMpi | None:
    """Return the MPI that a layer has put into an installation; None without one."""
    path = Path(environment, "sifwright/plan.json")
    try:
        plan = plan_file.parse_plan(small_file.read_bytes(path))
        mpi = pmi.mpi_of_facts(plan.facts, _shorten_path(path))
    except (OSError, ValueError):
        return None
    return None if mpi.of_base else mpi


def of_record(sif: Path) -> ImageMpi | None:
    """Return the MPI that the record beside an image names; None without such a record.

    A record without a PMI does not count, nor does that of another image in the folder.
    """
    _, record = known_record(sif)
    try:
        facts = plan_file.parse_plan(json.dumps(record)).facts
    except ValueError:
        return None
    mpi = pmi.mpi_of_facts(facts, _shorten_path(sif.parent / RECORD))
    return mpi if mpi.pmi or not mpi.name else None


def _of_file(catalog: Catalog, site: Site, sif: Path) -> ImageMpi:
    from sifwright.images.sources.inspect_image import facts_of  # noqa: PLC0415  # seldom needed

    try:
        facts = facts_of(str(sif), processor=site.processor, progress=QuietProgress())
    except SifwrightError:
        return pmi.ImageMpi(name=pmi.UNKNOWN, source=f"{_shorten_path(sif)} (not to be inspected)")
    return pmi.inspected_mpi(
        facts.mpi, catalog.versions.get("mpi", {}), f"inspected {_shorten_path(sif)}"
    )


def _shorten_path(path: Path) -> str:
    here = Path.cwd()
    text = str(path.relative_to(here) if path.is_relative_to(here) else path)
    return text if text.isprintable() else quoted(text)
