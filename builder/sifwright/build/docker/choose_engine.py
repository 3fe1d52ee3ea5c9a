"""Choose Docker Engine or podman for a build, and check that it suits the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.build.docker.docker_build import reclaim
from sifwright.errors import MachineError
from sifwright.host.engines import docker
from sifwright.render import oci_config

if TYPE_CHECKING:
    from sifwright.host.engines.docker import Docker
    from sifwright.plan.model import Plan
    from sifwright.system.progress import Progress


def choose_engine(plan: Plan, progress: Progress) -> Docker:
    """Return the engine, without containers of killed builds; raises `MachineError`.

    Raises `PlanError` for a plan that no such engine can build.
    """
    oci_config.start(plan)
    engine = docker.find()
    if engine.processor != plan.site.processor:
        # Emulated programs would take days to build PyTorch.
        raise MachineError.of(
            f"site '{plan.site.name}' has {plan.site.processor} processors,"
            f" {engine} runs on {engine.processor}",
            where=engine.address,
            fix=f"Build on a machine with {plan.site.processor} processors.",
        )
    progress.note(f"with {engine} at {engine.address}")
    reclaim(engine)
    return engine
