"""Bases with packages that no lock holds."""

from sifwright.errors import MachineError
from sifwright.plan.model import Plan


def refuse_rpm_updates(plan: Plan) -> None:
    """Raise `MachineError` for updates of RPM packages; those of the base come with its digest."""
    first = plan.steps[0]
    updates = first.options.get("updates")
    if updates is None or updates.text == "false" or "apt" in first.layer.provides:
        return
    name = first.layer.name
    message = f"layer '{name}' installs updates of RPM packages, which no lock holds"
    fix = (
        f"Take a base image that has the updates, and --set {name}.updates=false."
        " Its digest locks all its packages."
    )
    raise MachineError.of(message, where=f"{plan.site.name}/{plan.image.name}", fix=fix)
