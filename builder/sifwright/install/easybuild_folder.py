"""The folder that `eb` installs from: easyconfig, SIF, run scripts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.catalog import site_environment
from sifwright.catalog.model import Catalog, LayerFile, Site
from sifwright.images.sif.fingerprint import known_fingerprint
from sifwright.install import archive, easyconfig
from sifwright.install.installed_image import NAME, InstalledImage
from sifwright.install.module import Module
from sifwright.system import digest_cache, files

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SHARE = "share/sifwright"
# File in place of a user's packed packages while they are in a folder; see its text.
DIRECTORY = "directory.squashfs"
# The archive of the files that all images share.
PROGRAMS = "sifwright-runscripts.tar.gz"
# File with the end of the engine's variable for the GPUs, for the commands in bin/.
GPU = "gpu"
_RUNSCRIPTS = "runscripts"


@dataclass(frozen=True, kw_only=True, slots=True)
class EasyBuildFolder:
    """Files of an installation; `sif` is None if the site has the image, or a person copies it.

    `missing` says then how to get it. With `image_url`, the address of a folder on a server, eb
    fetches the image from there. `programs` are the same for every image, `notes` and `links` are
    those of this one.
    """

    module: Module
    facts: InstalledImage
    sif: Path | None
    programs: tuple[LayerFile, ...]
    notes: tuple[LayerFile, ...]
    links: Mapping[str, str]
    missing: tuple[str, ...] = ()
    image_url: str = ""


def programs(catalog: Catalog) -> Iterator[LayerFile]:
    """Yield the run scripts, the commands, and what they have in common."""
    yield from dict(catalog.included).get(_RUNSCRIPTS, ())
    package = resources.files("sifwright") / "install"
    for folder, target in (("bin", "bin"), ("share", SHARE)):
        source = package / folder
        for path in sorted(source.iterdir(), key=lambda path: path.name) if source.is_dir() else ():
            if path.is_file():
                yield _packaged(path, f"{target}/{path.name}", executable=folder == "bin")
    yield _packaged(package / DIRECTORY, f"{SHARE}/{DIRECTORY}", executable=False)


def notes(site: Site, share: Mapping[str, bytes]) -> Iterator[LayerFile]:
    """Yield what is known of the site and of the image; `share` says what that is made of."""
    files = {
        **share,
        site_environment.FILE: site_environment.render(site).encode(),
        GPU: f"{site.gpu_variable}\n".encode(),
    }
    for name, data in files.items():
        yield LayerFile(path=f"{SHARE}/{name}", data=data)


def links(site: Site) -> dict[str, str]:
    """Return the plain names of commands that a site asks for."""
    return {f"bin/{name}": f"pytorch-{name}" for name in site.commands}


def _packaged(file: Traversable, path: str, *, executable: bool) -> LayerFile:
    return LayerFile(path=path, data=file.read_bytes(), executable=executable)


def write(bundle: EasyBuildFolder, folder: Path) -> Path:
    """Put the bundle into the folder, the easyconfig last; what was there of another one goes."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = bundle.facts.stem
    archives = {
        PROGRAMS: archive.archive(bundle.programs, {}),
        f"{stem}-notes.tar.gz": archive.archive(bundle.notes, bundle.links),
    }
    values = {
        "archives": {name: hashlib.sha256(data).hexdigest() for name, data in archives.items()},
        "links": tuple(bundle.links.items()),
        "sif_sha256": _sha256(bundle, folder / bundle.module.sif),
        "missing": bundle.missing,
        "image_url": bundle.image_url,
    }
    for name, data in archives.items():
        files.write(folder / name, data, mode=0o644)
    text = easyconfig.easyconfig(bundle.module, bundle.facts, values)
    files.write(folder / f"{stem}.eb", text.encode(), mode=0o644)
    _remove_others(folder, stem)
    return folder / f"{stem}.eb"


def _sha256(bundle: EasyBuildFolder, path: Path) -> str:
    """Put the image at the path, unless eb fetches it, and return its sha256; empty without one."""
    if bundle.sif is None:
        return ""
    path.unlink(missing_ok=True)
    target = bundle.sif.resolve()
    digest = digest_cache.sha256(target)
    if not bundle.image_url:
        give_sif(bundle.sif, path, path.parent)
        digest_cache.remember(target.stat(), digest)
    return digest


def give_sif(sif: Path, link: Path, seen_from: Path) -> None:
    """Give the SIF a second name, or make a link that leads to it from the folder `seen_from`."""
    target = sif.resolve()
    fingerprint = known_fingerprint(target)
    try:
        link.hardlink_to(target)
    except OSError as error:
        if error.errno not in files.NO_LINK_HERE:
            raise
        link.symlink_to(os.path.relpath(target, seen_from.resolve()))
    # The second name changed the time that digests are remembered for, and nothing else.
    digest_cache.remember(target.stat(), fingerprint, digest_cache.SIF)


def _remove_others(folder: Path, stem: str) -> None:
    for path in folder.glob(f"{NAME}-*-singularity-*"):
        if not path.name.startswith((f"{stem}.", f"{stem}-notes.")):
            path.unlink()
