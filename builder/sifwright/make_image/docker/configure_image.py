"""Give an image its configuration: environment, labels, user and command.

Podman 4.3 commits the files that it made as mount points, variables of its own, and an entry
point. The entry point cannot be removed. So its images are made of the container's whole tree.
"""

from dataclasses import asdict, replace

from sifwright.host.engines.docker import Container
from sifwright.make_image.docker.docker_build import DockerBuild, open_container
from sifwright.make_image.docker.image_archives import load_tree
from sifwright.render import oci_config
from sifwright.render.oci_config import OciConfig

# An image has none of these if its base has none.
_MADE = ("etc/hostname", "etc/hosts", "etc/mtab", "etc/resolv.conf", "run")
_ALWAYS = ("run/.containerenv",)


def configure_image(build: DockerBuild, tree: str, base: str) -> str:
    """Return the image of a tree with the plan's configuration; its only name is that of a step."""
    env, labels = build.engine.environment(base), build.engine.labels(base)
    config = oci_config.image_config(build.context.plan, env)
    return _configured(build, tree, base, replace(config, labels={**labels, **config.labels}))


def configure_like_base(build: DockerBuild, tree: str, base: str) -> str:
    """Return the image of a tree with its base's configuration, for Apptainer to build from."""
    if not build.engine.is_podman:
        return tree
    env, labels = build.engine.environment(base), build.engine.labels(base)
    config = OciConfig(env=env, labels=labels, user="0", home="/", working_dir="/")
    return _configured(build, tree, base, config)


def _configured(build: DockerBuild, tree: str, base: str, config: OciConfig) -> str:
    """Return the image of a container that never starts, and has this configuration."""
    key = build.key(tree, asdict(config))
    if image := build.find_result(key):
        return image
    settings = Container(
        image=tree,
        entrypoint=config.entrypoint,
        command=config.cmd,
        user=config.user,
        working_dir=config.working_dir,
        env=config.env,
        labels=config.labels,
    )
    with open_container(build.engine, settings) as container:
        if not build.engine.is_podman:
            return build.commit(container, key, f"configuration of plan {build.context.plan.id}")
        with open_container(build.engine, Container(image=base)) as plain:
            missing = {path for path in _MADE if not build.engine.has(plain, f"/{path}")}
        stream = build.engine.export(container)
        return build.tag_result(load_tree(build, stream, config, {*_ALWAYS, *missing}), key)
