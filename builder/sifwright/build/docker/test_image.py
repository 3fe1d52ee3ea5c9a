"""Run the tests of all layers in the finished image, as its users would run it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.build.docker import containers
from sifwright.build.docker.containers import container
from sifwright.errors import TestError
from sifwright.host.engines.docker import Container
from sifwright.render import oci_config, singularity_metadata
from sifwright.render.definition import definition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sifwright.build.docker.docker_context import DockerBuildContext

__all__ = ["run_tests"]


def run_tests(work: DockerBuildContext, image: str, layers: Sequence[str] | None) -> None:
    """Run them as the image's own user, in a tree that cannot be written to, as that of a SIF.

    `layers` are those whose tests are to run, instead of all. Raises `TestError`.
    """
    work.watcher.timer.start("test")
    script = singularity_metadata.section(definition(work.plan, work.header), "test")
    config = oci_config.image_config(work.plan, {})
    only = {} if layers is None else {"SIFWRIGHT_TESTS": " ".join(layers)}
    wanted = Container(
        image=image,
        name=containers.name(),
        entrypoint=("/bin/sh", "-c"),
        command=(script,),
        user=config.user,
        working_dir=config.working_dir,
        env=only,
        read_only=True,
    )
    with container(work.engine, wanted) as made:
        _, status = work.follow(made)
    if status != 0:
        raise TestError(work.watcher.problem("the test failed in the finished image"))
