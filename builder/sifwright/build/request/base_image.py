"""The image that a plan starts from: where it is, and which one exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.catalog import image_name, mirrors
from sifwright.catalog.mirrors import MirrorRule
from sifwright.errors import MachineError, Problem, SifwrightError
from sifwright.host.network import registry
from sifwright.images.sif import sif_file
from sifwright.system import file_digests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sifwright.catalog.model import Site
    from sifwright.host.network.registry import Reference
    from sifwright.images.sif.sif_file import SifImage
    from sifwright.plan.model import Plan

__all__ = [
    "BaseImage",
    "base_image_of",
    "digest_of_local",
    "engine_address",
    "engine_image_id",
    "local_digest",
    "local_file",
    "local_name",
    "overlay_problems",
    "redirected_reference",
    "refuse_overlays",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseImage:
    """`name` as the layer says it, `reference` where the mirrors file leads to."""

    layer: str
    name: str
    reference: Reference

    @property
    def is_redirected(self) -> bool:
        return replace(self.reference, http=False) != registry.parse(self.name)

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the variables for a registry without TLS (Apptainer's option --no-https)."""
        names = ("APPTAINER_NOHTTPS", "SINGULARITY_NOHTTPS")
        return dict.fromkeys(names, "true") if self.reference.http else {}


def base_image_of(plan: Plan) -> BaseImage | None:
    """Return the image of a registry that a plan starts from, if it does.

    The mirrors file says where it is found, and else the site, which may have one for Docker Hub.
    """
    base = plan.steps[0]
    lines = base.header
    if lines.get("Bootstrap") != image_name.REGISTRY or not lines.get("From"):
        return None
    reference = redirected_reference(plan.site, lines["From"])
    return BaseImage(layer=base.layer.name, name=lines["From"], reference=reference)


def redirected_reference(site: Site, name: str) -> Reference:
    """Return the address of an image, redirected by the mirrors file, else by the site."""
    plain = str(registry.parse(name))
    address = mirrors.redirect(mirrors.load().of("oci"), plain)
    if address == plain and site.registry_mirror:
        hub = MirrorRule(kind="oci", source=registry.DOCKER_HUB, target=site.registry_mirror)
        address = mirrors.redirect((hub,), plain)
    return registry.parse(address)


def local_name(plan: Plan) -> str:
    """Return the base image of this machine; empty if the plan starts from another kind.

    A SIF by its path, anything else with its kind before it: see `image_name`.
    """
    lines = plan.steps[0].header
    kind, name = lines.get("Bootstrap", ""), lines.get("From", "")
    if kind == "localimage":
        return name
    return f"{kind}:{name}" if kind in image_name.LOCAL else ""


def local_digest(plan: Plan, *, from_disk: bool = False) -> str:
    """Return the digest of the base image of this machine; empty for another kind.

    `from_disk`: of its bytes as they are now, whatever is remembered.
    """
    return digest_of_local(local_name(plan), from_disk=from_disk)


def local_file(name: str) -> Path | None:
    """Return the file that identifies a base image of this machine, if it exists.

    `name` is the path of a SIF, else it has the kind before it: see `image_name`.
    """
    kind, rest = image_name.split(name)
    path = Path(name if kind == image_name.REGISTRY else rest)
    # It names all else in the folder by digests, which are compared while that is read.
    path = path / "index.json" if kind == "oci" else path
    return path if name and path.is_file() else None


def digest_of_local(name: str, *, from_disk: bool = False) -> str:
    """Return its sha256, or its id in Docker Engine; empty if it does not exist.

    `from_disk`: of its bytes as they are now, whatever is remembered.
    """
    kind, rest = image_name.split(name)
    if kind == image_name.DAEMON:
        return engine_image_id(rest)
    path = local_file(name)
    if path is None:
        return ""
    return file_digests.read(path) if from_disk else file_digests.sha256(path)


def overlay_problems(plan: Plan) -> Iterator[Problem]:
    """Yield a problem if the base has overlays, which Apptainer 1.4.5 leaves out and ends with 0.

    Apptainer itself refuses a file that is no SIF.
    """
    path = local_file(local_name(plan))
    if path is None:
        return
    try:
        image = sif_file.read(path)
    except sif_file.SifError:
        return
    if count := _overlays(image):
        layer = plan.steps[0].layer.name
        yield Problem(
            where=str(path),
            what=f"layer '{layer}' starts from it, and would take the first of its"
            f" {count + 1} partitions only",
            fix=f"sifwright flatten {path} NEW.sif, and start from NEW.sif"
            " (or build it with --layout flat).",
        )


def refuse_overlays(plan: Plan) -> None:
    """Raise `MachineError` for such a base."""
    if problems := list(overlay_problems(plan)):
        raise MachineError(*problems)


def _overlays(image: SifImage) -> int:
    others = (
        descriptor
        for descriptor in image.descriptors
        if descriptor.is_overlay and not descriptor.is_squashfs
    )
    return len(image.partitions[1:]) + sum(1 for _ in others)


def engine_address() -> str:
    """Return the address of the engine; empty if there is none."""
    from sifwright.host.engines.docker import find_engine  # noqa: PLC0415  # most images start from none

    return next(iter(find_engine.addresses()), "")


def engine_image_id(name: str) -> str:
    """Return the id (sha256:…) of an image; empty if the engine has none, or does not answer.

    Whoever goes on from it asks again, and says why there is none.
    """
    from sifwright.images.sources import docker_engine  # noqa: PLC0415  # as above

    try:
        return docker_engine.identity(name)
    except SifwrightError:
        return ""
