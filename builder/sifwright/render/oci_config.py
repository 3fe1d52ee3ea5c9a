"""The start and the configuration of a plan's OCI image.

The Dockerfile and the builds by an engine share them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sifwright.catalog.model import EnvRule, LayerFile
from sifwright.errors import PlanError
from sifwright.plan.model import Plan
from sifwright.render import build_files
from sifwright.render.definition import labels

# The PATH that engines, and Apptainer, set for an image without one.
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The folder in which the program make-root leaves a Debian system.
ROOT = "/rootfs"
# A number, as Kubernetes wants it; of most people's first account, so that they own what it writes.
_USER = "1000:1000"
# Home of every user, with an account in the image or without: caches can be written there.
_HOME = "/tmp"  # noqa: S108
_KEYWORDS = {
    "docker": {"Bootstrap", "From"},
    "docker-daemon": {"Bootstrap", "From"},
    "docker-archive": {"Bootstrap", "From"},
    "oci": {"Bootstrap", "From"},
    "oci-archive": {"Bootstrap", "From"},
    "debootstrap": {"Bootstrap", "OSVersion", "MirrorURL", "Include"},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class OciConfig:
    """The configuration of the finished image; `home` is in `env`, too."""

    env: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    user: str = _USER
    home: str = _HOME
    working_dir: str = _HOME
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ("bash",)


@dataclass(frozen=True, kw_only=True, slots=True)
class Registry:
    """The plan starts from this image of a registry, by the name that the layer gives it."""

    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Debootstrap:
    """The plan starts from a Debian system that the program make-root makes.

    It runs in the image `name`. An empty `mirror` is the building machine's, or Debian's own.
    """

    suite: str
    include: str
    mirror: str = ""

    @property
    def name(self) -> str:
        return f"docker.io/library/debian:{self.suite}-slim"

    @property
    def command(self) -> tuple[str, ...]:
        """Return the command that makes the system in `ROOT`, by the files of `programs`."""
        program = f"{build_files.BUILD}/make-root"
        return ("bash", program, self.suite, self.include, self.mirror)


@dataclass(frozen=True, kw_only=True, slots=True)
class Local:
    """The plan starts from an image of this machine: the engine's, an archive, a layout."""

    kind: str
    name: str


Start = Registry | Debootstrap | Local


def start(plan: Plan) -> Start:
    """Return the start of the first step; raise `PlanError` if only a SIF can start there."""
    base = plan.steps[0]
    lines = base.header
    kind = lines.get("Bootstrap", "")
    others = lines.keys() - _KEYWORDS.get(kind, set())
    if kind not in _KEYWORDS or others:
        line = f"Bootstrap: {kind}" if kind not in _KEYWORDS else f"{min(others)} of its header"
        message = f"a Dockerfile cannot say '{line}'"
        fix = "Start from an image of a registry, or build with Apptainer: sifwright build."
        raise PlanError.of(message, where=f"header of layer '{base.layer.name}'", fix=fix)
    if kind == "docker":
        return Registry(name=lines["From"])
    if kind != "debootstrap":
        return Local(kind=kind, name=lines["From"])
    include = lines.get("Include", "")
    return Debootstrap(suite=lines["OSVersion"], include=include, mirror=lines["MirrorURL"])


def programs(plan: Plan) -> Iterator[LayerFile]:
    """Yield the files that run the steps, and the program that makes a Debian system."""
    makes_root = isinstance(start(plan), Debootstrap)
    others = ("mirrored",) if makes_root else ()
    yield from build_files.programs(build_files.needed_programs(plan, *others))
    yield surround()
    for name in ("run", "make-root") if makes_root else ("run",):
        text = build_files.package_text(f"render/templates/oci/{name}")
        yield LayerFile.of_text(f"{build_files.BUILD}/{name}", text)


def surround() -> LayerFile:
    """Return the program that makes the environment of steps."""
    text = build_files.package_text("render/templates/surround.sh")
    return LayerFile.of_text(f"{build_files.BUILD}/surround", text)


def image_config(plan: Plan, base_env: Mapping[str, str]) -> OciConfig:
    """Return the configuration on top of a base image's environment."""
    env = {"PATH": DEFAULT_PATH, **base_env}
    for step in plan.steps:
        env = environment(env, step.layer.env)
    config = OciConfig(env={**env, "HOME": _HOME}, labels=dict(labels(plan)))
    if (start := plan.image.start) is None:
        return config
    # Start what the image's own recipe starts.
    entrypoint = (build_files.RUNSCRIPT,) if start.script else start.entrypoint
    folder = start.workdir or config.working_dir
    return replace(config, entrypoint=entrypoint, cmd=start.cmd, working_dir=folder)


def environment(before: Mapping[str, str], rules: tuple[EnvRule, ...]) -> dict[str, str]:
    """Return the environment after the rules of a layer."""
    env = dict(before)
    for rule in rules:
        old, own = env.get(rule.name, ""), rule.value
        with_old = {"prepend": f"{own}:{old}", "append": f"{old}:{own}", "default": old, "set": own}
        env[rule.name] = with_old[rule.action] if old else own
    return env
