"""The image that a plan starts from: where it is, and which one exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sifwright.build.request import local_base
from sifwright.catalog import image_name, mirrors
from sifwright.catalog.mirrors import MirrorRule
from sifwright.host.network import registry
from sifwright.render import bootstrap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sifwright.catalog.model import Site
    from sifwright.host.network.registry import Reference
    from sifwright.plan.model import Plan

__all__ = ["BaseImage", "base_image_of", "local_digest", "local_name", "redirected_reference"]


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
        """What makes the engine ask a registry without TLS (its option --no-https)."""
        names = ("APPTAINER_NOHTTPS", "SINGULARITY_NOHTTPS")
        return dict.fromkeys(names, "true") if self.reference.http else {}


def base_image_of(plan: Plan) -> BaseImage | None:
    """The image that a plan's first step starts from, if it comes from a registry.

    The mirrors file says where it is found, and else the site, which may have one for Docker Hub.
    """
    base = plan.steps[0]
    lines = bootstrap.header(base)
    if lines.get("Bootstrap") != image_name.REGISTRY or not lines.get("From"):
        return None
    reference = redirected_reference(plan.site, lines["From"])
    return BaseImage(layer=base.layer.name, name=lines["From"], reference=reference)


def redirected_reference(site: Site, name: str) -> Reference:
    """Where an image of a registry is found: as the mirrors file says, else the site."""
    plain = str(registry.parse(name))
    found = mirrors.redirect(mirrors.load().of("oci"), plain)
    if found == plain and site.registry_mirror:
        hub = MirrorRule(kind="oci", source=registry.DOCKER_HUB, target=site.registry_mirror)
        found = mirrors.redirect((hub,), plain)
    return registry.parse(found)


def local_name(plan: Plan) -> str:
    """What of this machine a plan starts from; empty if it starts from something else.

    A SIF by its path, anything else with its kind before it: see `localbase`.
    """
    lines = bootstrap.header(plan.steps[0])
    kind, name = lines.get("Bootstrap", ""), lines.get("From", "")
    if kind == "localimage":
        return name
    return f"{kind}:{name}" if kind in image_name.LOCAL else ""


def local_digest(plan: Plan, *, from_disk: bool = False) -> str:
    """Which one it is: `localbase.digest`; empty if a plan starts from something else.

    `from_disk`: of its bytes as they are now, whatever is remembered.
    """
    return local_base.digest(local_name(plan), from_disk=from_disk)
