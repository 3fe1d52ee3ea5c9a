"""The folder that `eb` installs from: easyconfig, SIF, run scripts."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from sifwright import digests, files, siteenvironment
from sifwright.installation import archive, rendering
from sifwright.installation.facts import NAME
from sifwright.installation.model import ENGINE_GPU
from sifwright.model import LayerFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable
    from pathlib import Path

    from sifwright.installation.facts import ImageFacts
    from sifwright.installation.model import Module
    from sifwright.model import Catalog, Site

__all__ = ["SHARE", "Bundle", "as_json", "contents", "give_sif", "links", "write"]

SHARE = "share/sifwright"
# How the engine's variable for the GPUs ends, for the commands in bin/.
GPU = "gpu"
_RUNSCRIPTS = "runscripts"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """What is to be installed; `sif` is None where the site has the image already.

    `files` and `links` are those of the archive.
    """

    module: Module
    facts: ImageFacts
    sif: Path | None
    files: tuple[LayerFile, ...]
    links: Mapping[str, str]


def contents(catalog: Catalog, site: Site, share: Mapping[str, bytes]) -> Iterator[LayerFile]:
    """What an installation has beside the SIF; `share` are files that say what it is made of."""
    for folder, included in catalog.included:
        if folder == _RUNSCRIPTS:
            yield from included
            break
    yield from _programs()
    notes = {
        **share,
        siteenvironment.FILE: siteenvironment.text(site).encode(),
        GPU: f"{ENGINE_GPU[site.vendor]}\n".encode(),
    }
    for name, data in notes.items():
        yield LayerFile(path=f"{SHARE}/{name}", data=data, executable=False)


def links(site: Site) -> dict[str, str]:
    """The plain names of commands that a site asks for."""
    return {f"bin/{name}": f"pytorch-{name}" for name in site.commands}


def _programs() -> Iterator[LayerFile]:
    """The commands, and in share/ what they have in common."""
    package = resources.files("sifwright") / "installation"
    for folder, target in (("bin", "bin"), ("share", SHARE)):
        place = package / folder
        for one in sorted(place.iterdir(), key=lambda found: found.name) if place.is_dir() else ():
            if one.is_file():
                yield _packaged(one, f"{target}/{one.name}", executable=folder == "bin")


def _packaged(file: Traversable, path: str, *, executable: bool) -> LayerFile:
    return LayerFile(path=path, data=file.read_bytes(), executable=executable)


def write(bundle: Bundle, folder: Path) -> Path:
    """Put the bundle into the folder, the easyconfig last; what was there of another one goes."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = bundle.facts.stem
    data = archive.archive(bundle.files, bundle.links)
    config = rendering.Easyconfig(
        module=bundle.module,
        facts=bundle.facts,
        archive=f"{stem}-runscripts.tar.gz",
        archive_sha256=hashlib.sha256(data).hexdigest(),
        links=tuple(bundle.links.items()),
        sif_sha256=_give(bundle.sif, folder / bundle.module.sif) if bundle.sif else "",
    )
    text = rendering.easyconfig(config)
    files.write(folder / config.archive, data, mode=0o644)
    files.write(folder / f"{stem}.eb", text.encode(), mode=0o644)
    _remove_others(folder, stem)
    return folder / f"{stem}.eb"


def _give(sif: Path, place: Path) -> str:
    """As `give_sif`, and return the sha256."""
    target = sif.resolve()
    digest = digests.sha256(target)
    place.unlink(missing_ok=True)
    give_sif(sif, place, place.parent)
    digests.remember(target.stat(), digest)
    return digest


def give_sif(sif: Path, place: Path, seen_from: Path) -> None:
    """Give the SIF a second name, or make a link that leads to it from the folder `seen_from`."""
    target = sif.resolve()
    fingerprint = digests.of_sif(target)
    try:
        place.hardlink_to(target)
    except OSError as error:
        if error.errno not in files.NO_LINK_HERE:
            raise
        place.symlink_to(os.path.relpath(target, seen_from.resolve()))
    # The second name changed the time that digests are remembered for, and nothing else.
    digests.remember(target.stat(), fingerprint, digests.SIF)


def _remove_others(folder: Path, stem: str) -> None:
    """An older image would keep its room on the disk."""
    for path in folder.glob(f"{NAME}-*-singularity-*"):
        if not path.name.startswith(f"{stem}.") and not path.name.startswith(f"{stem}-runscripts."):
            path.unlink()


def as_json(document: Mapping[str, object]) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode()
