"""The size of a base image that the user names: its layer's own number suits the largest."""

from contextlib import suppress
from dataclasses import replace

from sifwright.errors import SifwrightError
from sifwright.host.network.http import HttpOptions
from sifwright.host.network.registry import RegistryError
from sifwright.images.contents.image_tree import BadImage
from sifwright.make_image.resolve_request import adapt_base
from sifwright.make_image.resolve_request.base_image import BaseImage
from sifwright.plan.model import Plan

# A registry that does not answer is the network check's to report.
_ONCE = HttpOptions(netrc=False)


def sized(plan: Plan, base: BaseImage) -> Plan:
    """Return the plan with the size of its base by manifest or file; unchanged without one."""
    step = plan.steps[0]
    if step.layer.inspects is None or not (packed := _packed(base, plan.site.processor)):
        return plan
    layer = replace(step.layer, disk_mb=adapt_base.unpacked_mb(packed))
    return replace(plan, steps=(replace(step, layer=layer), *plan.steps[1:]))


def _packed(base: BaseImage, processor: str) -> int:
    """Return the bytes that it has as it travels; 0 if unknown."""
    if base.reference:
        from sifwright.images.sources.registry_image import Remote  # noqa: PLC0415  # with urllib3

        with suppress(OSError, SifwrightError, RegistryError, BadImage):
            return Remote(base.reference, _ONCE).resolved(processor).bytes
    elif base.file and base.kind != "oci":
        return base.file.stat().st_size
    return 0
