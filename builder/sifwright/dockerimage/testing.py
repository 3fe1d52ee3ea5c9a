"""Run the tests of all layers in the finished image, as its users would run it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.dockerimage import containers
from sifwright.dockerimage.containers import container
from sifwright.engines.docker import Container
from sifwright.errors import TestError
from sifwright.render import metadata, ociimage
from sifwright.render.definition import definition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sifwright.dockerimage.work import Work

__all__ = ["run_tests"]


def run_tests(work: Work, image: str, layers: Sequence[str] | None) -> None:
    """Run them as the image's own user, in a tree that cannot be written to, as that of a SIF.

    `layers` are those whose tests are to run, instead of all. Raises `TestError`.
    """
    work.watcher.timer.start("test")
    script = metadata.section(definition(work.plan, work.header), "test")
    config = ociimage.image_config(work.plan, {})
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
