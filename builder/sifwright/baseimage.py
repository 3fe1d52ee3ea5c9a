"""The image that a plan starts from: where it is, and which one exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sifwright import localbase, mirrors, registry
from sifwright.mirrors import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sifwright.model import Plan, Step
    from sifwright.registry import Reference

__all__ = ["BaseImage", "header", "local_digest", "local_name", "of"]


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


def of(plan: Plan) -> BaseImage | None:
    """The image that a plan's first step starts from, if it comes from a registry.

    The mirrors file says where it is found, and else the site, which may have one for Docker Hub.
    """
    base = plan.steps[0]
    lines = header(base)
    if lines.get("Bootstrap") != "docker" or not lines.get("From"):
        return None
    plain = str(registry.parse(lines["From"]))
    rules = mirrors.load().of("oci")
    found = mirrors.redirect(rules, plain)
    if found == plain and plan.site.registry_mirror:
        hub = Rule(kind="oci", source=registry.DOCKER_HUB, target=plan.site.registry_mirror)
        found = mirrors.redirect((hub,), plain)
    return BaseImage(layer=base.layer.name, name=lines["From"], reference=registry.parse(found))


def local_name(plan: Plan) -> str:
    """The file of this machine that a plan starts from; empty if it starts from something else."""
    lines = header(plan.steps[0])
    return lines.get("From", "") if lines.get("Bootstrap") == "localimage" else ""


def local_digest(plan: Plan, *, from_disk: bool = False) -> str:
    """The sha256 of a SIF that a plan starts from; empty if it starts from something else.

    `from_disk`: of its bytes as they are now, whatever is remembered.
    """
    return localbase.digest(local_name(plan), from_disk=from_disk)


def header(base: Step) -> dict[str, str]:
    """The header's lines as layer and options give them; empty where the machine must."""
    return {
        line.keyword: line.literal or (base.options[line.option].text if line.option else "")
        for line in base.layer.bootstrap
    }
