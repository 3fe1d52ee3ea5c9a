"""The command `deliver`: from a SIF the image that the site's engine takes."""

import os
import shlex
from argparse import Namespace
from pathlib import Path

from sifwright.catalog import image_name
from sifwright.catalog.model import Site
from sifwright.cli.options import arguments as shared
from sifwright.cli.options import matrix
from sifwright.cli.options.context import load
from sifwright.cli.options.output import print_lines
from sifwright.errors import UsageError
from sifwright.make_image.deliver import deliver_image, engine_needs
from sifwright.make_image.deliver.deliver_image import SUFFIXES
from sifwright.make_image.deliver.edf import absent_mounts, edf
from sifwright.plan.resolve import get_or_suggest
from sifwright.system import files
from sifwright.system.terminal import note, print_line

HELP = "write the squashfs, OCI or EDF file that a site's engine takes"
GROUP = "build"

_EDF_ENGINE = "container-engine"
_LOAD = {
    "podman": "podman load --input {}",
    "podman-hpc": "podman-hpc load --input {0} && podman-hpc migrate {1}",
    "shifter": "skopeo copy oci-archive:{} docker://REGISTRY/NAME:TAG",
}
ARGUMENTS = (
    shared.SITE,
    shared.IMAGE,
    shared.argument(
        "--as",
        dest="form",
        choices=tuple(SUFFIXES),
        default="",
        help="the form; default: that of the site's engine",
    ),
    shared.text("--sif", "PATH", "the SIF; default: the one that was built"),
    shared.switch(
        "--elsewhere",
        "the jobs run on another machine: do not look for the mounts of an EDF file on this one",
    ),
    shared.OUTPUT_FOLDER,
)


def run(arguments: Namespace) -> None:
    """Write the file beside the SIF, and print its name and the next command."""
    arguments.image, values = matrix.split_name(arguments.image)
    catalog = load(arguments)
    site = get_or_suggest(catalog.sites, arguments.site, "site")
    image = get_or_suggest(catalog.images, arguments.image or site.image, "image")
    form = arguments.form or site.delivery
    _require_engine(site, form)
    folder = Path(arguments.output, site.name, f"{image.name}{values}")
    sif = Path(arguments.sif or folder / "image.sif")
    if not sif.exists():
        fix = f"Build it: sifwright build {site.name} {image.name}; or name one with --sif."
        raise UsageError.of("there is no such file", where=str(sif), fix=fix)
    parts = _parts(site, form)
    mounts = "edf" in parts and not arguments.elsewhere
    absent = absent_mounts(site, os.environ) if mounts else ()
    if problems := (*engine_needs.image_problems(site, sif), *absent):
        raise UsageError(*problems)
    print_lines(engine_needs.image_notes(site, sif), note)
    name = f"localhost/{image_name.of_engine(image.name, site.name, values)}"
    for part in parts:
        path = sif.absolute().with_name(f"{image.name}{SUFFIXES[part]}")
        if part == "edf":
            text = edf(site, path.with_suffix(SUFFIXES["squashfs"]))
            files.write(path, text.encode(), mode=0o644)
        else:
            deliver_image.deliver(sif, part, path, name)
        print_line(f"delivered: {path} ({path.stat().st_size / 1e6:.1f} MB)")
        if part == "oci" and site.container_product in _LOAD:
            command = _LOAD[site.container_product].format(shlex.quote(str(path)), name)
            print_line(f"load it:   {command}")


def _require_engine(site: Site, form: str) -> None:
    """Raise `UsageError` for a form that no engine of the site reads."""
    if form == "sif":
        message = f"site '{site.name}' runs SIFs as they are"
        raise UsageError.of(message, where="deliver", fix="Name a form: --as squashfs or oci.")
    if form == "edf" and site.container_product != _EDF_ENGINE:
        message = f"site '{site.name}' has no Container Engine, which reads EDF files"
        raise UsageError.of(message, where="--as edf", fix="Leave it out, or name another form.")


def _parts(site: Site, form: str) -> tuple[str, ...]:
    """Return the files to write: an EDF file is of use beside its squashfs file only."""
    with_edf = form == "squashfs" and site.container_product == _EDF_ENGINE
    return ("squashfs", "edf") if with_edf else (form,)
