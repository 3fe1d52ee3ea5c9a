"""An engine that answers, and what a build asks of it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from docker import APIClient, errors, types
from docker.utils import config
from docker.utils.proxy import ProxyConfig

from sifwright.errors import BuildError, MachineError, SifwrightError
from sifwright.host.engines.docker.engine_errors import LOST, advice_for, is_full, one_line

_TMPFS = dict.fromkeys(("/tmp", "/var/tmp"), "exec,mode=1777")  # noqa: S108  # of the container
_NO_FOLDER = ("bind source path does not exist", "statfs /")
# Its release notes: "Add support for pulling zstd compressed layers".
_ZSTD = 23
_LOADED = re.compile(r"Loaded image(?: ID|s)?(?:\(s\))?: (?:sha256:)?([0-9a-f]{64})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Container:
    """The settings of a container; an image of it has all but the mounts.

    `mounts` are (folder of this machine, place in the container, read only).
    """

    image: str
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ("true",)
    user: str = "0"
    working_dir: str = "/"
    env: Mapping[str, str] | None = None
    labels: Mapping[str, str] | None = None
    mounts: Sequence[tuple[str, str, bool]] = ()
    read_only: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Docker:
    """An engine that answers."""

    api: APIClient
    product: str
    version: str
    address: str
    processor: str

    def __str__(self) -> str:
        return f"{self.product} {self.version}"

    def root(self) -> str:
        """Return the folder of the engine's images, or ''."""
        try:
            return str(self.api.info().get("DockerRootDir", ""))
        except (errors.DockerException, *LOST):
            return ""

    def proxies(self) -> dict[str, str]:
        """Return the proxies that the user's config.json names for this engine, as variables.

        Steps get them as they get those of the environment. The SDK would give them to the
        container, and a commit would keep them.
        """
        # An object of objects: contexts.py has seen to it before the engine was asked.
        settings: Mapping[str, Any] = config.load_general_config()
        named: Mapping[str, Any] = settings.get("proxies", {})
        values = ProxyConfig.from_dict(named.get(self.address) or named.get("default", {}))
        return {name: str(value) for name, value in values.get_environment().items()}

    @property
    def is_podman(self) -> bool:
        return self.product == "podman"

    @property
    def unpacks_zstd(self) -> bool:
        """Return whether it unpacks zstd; Docker Engine 20.10 does not (tried), 23 does."""
        first = self.version.partition(".")[0]
        return self.is_podman or not first.isdigit() or int(first) >= _ZSTD

    def identity(self, name: str) -> str:
        try:
            return str(self.details(name)["Id"])
        except errors.ImageNotFound:
            return ""

    def has_history(self, name: str) -> bool:
        """Return whether an image has a history; podman 4.3 fails for one without."""
        with translate_errors(self), suppress(errors.APIError):
            return bool(self.api.history(name))  # type: ignore[no-untyped-call]
        return False

    def environment(self, name: str) -> dict[str, str]:
        lines = self.details(name)["Config"].get("Env") or []
        return dict(line.partition("=")[::2] for line in lines)

    def labels(self, name: str) -> dict[str, str]:
        return dict(self.details(name)["Config"].get("Labels") or {})

    def size(self, name: str) -> int:
        return int(self.details(name)["Size"])

    def details(self, name: str) -> dict[str, Any]:
        """Return all that the engine says of an image; raise `ImageNotFound` of the SDK."""
        with translate_errors(self, missing=True):
            image: dict[str, Any] = self.api.inspect_image(name)  # type: ignore[no-untyped-call]
            return image

    def pull(
        self, name: str, login: dict[str, Any] | None, tell: Callable[[dict[str, Any]], None]
    ) -> None:
        """Pull an image; `tell` gets what the engine says of each layer.

        An empty `login` tells the engine that there is none; with None the SDK looks for one.
        """
        repository, _, digest = name.partition("@")
        with translate_errors(self, pulling=name):
            lines = self.api.pull(
                repository, tag=digest, stream=True, decode=True, auth_config=login
            )
            why = ""
            # To the end: it gives the connection back.
            for line in lines:
                why = why or str(line.get("error", ""))
                tell(line)
            if why:
                raise errors.DockerException(why)

    def tag(self, image: str, repository: str, tag: str) -> None:
        with translate_errors(self):
            self.api.tag(image, repository, tag, force=True)

    def untag(self, name: str) -> None:
        """Take a name away; the image goes with it if nothing else needs it."""
        with translate_errors(self), suppress(errors.NotFound):
            # Podman would remove a nameless base that it stands on as well.
            self.api.remove_image(name, noprune=True)

    def save(self, image: str) -> Iterator[bytes]:
        with translate_errors(self):
            yield from self.api.get_image(image)

    def load(self, archive: Iterable[bytes]) -> str:
        """Load a docker-archive of one image that has no name; its id.

        Raises `ValueError` if the engine does not take what is in it.
        """
        with translate_errors(self):
            lines = list(self.api.load_image(archive))  # type: ignore[no-untyped-call]
            text = "".join(str(line.get("stream", "")) for line in lines)
            if match := _LOADED.search(text):
                return _whole(match[1])
            why = next((str(line["error"]) for line in lines if "error" in line), text)
            if is_full(why):
                raise errors.DockerException(why)
        raise ValueError(why or "the engine says of no image that it was loaded")

    def create(self, container: Container, name: str) -> str:
        """Make a container of this name; its id."""
        with translate_errors(self):
            created = self.api.create_container(
                container.image,
                name=name,
                hostname="localhost",
                entrypoint=list(container.entrypoint),
                command=list(container.command),
                user=container.user,
                working_dir=container.working_dir,
                environment=dict(container.env) if container.env else None,
                labels=dict(container.labels) if container.labels else None,
                # Podman's Docker interface hides a base image's HEALTHCHECK.
                healthcheck={"test": ["NONE"]} if self.is_podman else None,
                # The machine's part of a container, which no image of it has.
                host_config=self.api.create_host_config(
                    network_mode="host",
                    mounts=[
                        types.Mount(target, source, type="bind", read_only=read_only)
                        for source, target, read_only in container.mounts
                    ],
                    # The engine keeps no log: a step's output may hold this machine's settings.
                    log_config=types.LogConfig(type="none"),
                    read_only=container.read_only,
                    tmpfs=_TMPFS if container.read_only else None,
                ),
                # The user's proxies would stay in each image; see host_settings.py.
                use_config_proxy=False,
            )
            return str(created["Id"])

    def put(self, container: str, archive: bytes) -> None:
        """Unpack a tar archive at the container's /."""
        with translate_errors(self):
            self.api.put_archive(container, "/", archive)

    def get(self, container: str, path: str) -> Iterator[bytes]:
        with translate_errors(self):
            chunks, _ = self.api.get_archive(container, path)
            yield from chunks

    def has(self, container: str, path: str) -> bool:
        with translate_errors(self), suppress(errors.NotFound):
            self.api.get_archive(container, path)
            return True
        return False

    def run(self, container: str, tell: Callable[[bytes], None]) -> int:
        """Run a container to its end; `tell` gets what it prints. Its exit status."""
        with translate_errors(self):
            output = self.api.attach(container, stream=True, stdout=True, stderr=True)
            self.api.start(container)
            for chunk in output:
                tell(chunk)
            return int(self.api.wait(container)["StatusCode"])

    def export(self, container: str) -> Iterator[bytes]:
        with translate_errors(self):
            yield from self.api.export(container)

    def commit(self, container: str, repository: str, tag: str, message: str) -> str:
        """Make an image of a container, with its configuration; the image's id."""
        with translate_errors(self):
            image = self.api.commit(container, repository=repository, tag=tag, message=message)
        return _whole(str(image["Id"]))

    def remove(self, container: str) -> None:
        """Remove a container, running or not, and what is only its own."""
        with translate_errors(self), suppress(errors.NotFound):
            self.api.remove_container(container, v=True, force=True)

    def containers(self, prefix: str) -> list[str]:
        with translate_errors(self):
            containers = self.api.containers(all=True, filters={"name": prefix})
        names = (name.lstrip("/") for container in containers for name in container["Names"])
        return [name for name in names if name.startswith(prefix)]


def _whole(identity: str) -> str:
    """Add the algorithm of a digest, which podman leaves out."""
    return identity if identity.startswith("sha256:") else f"sha256:{identity}"


@contextmanager
def translate_errors(engine: Docker, *, missing: bool = False, pulling: str = "") -> Iterator[None]:
    """Turn what the SDK raises inside into ours; `missing`: but for what is not there.

    `pulling` is the image that a registry is asked for: most of what goes wrong is its doing.
    """
    try:
        yield
    except errors.DockerException as error:
        if missing and isinstance(error, errors.NotFound):
            raise
        raise _error(engine, one_line(error), pulling) from None
    except LOST as error:
        raise BuildError.of(
            f"the connection to {engine} was lost: {one_line(error)}",
            where=engine.address,
            fix="See whether it still runs, and what its log says; then build again.",
        ) from None


def _error(engine: Docker, why: str, pulling: str) -> SifwrightError:
    if is_full(why):
        return MachineError.of(
            f"the disk of {engine} is full: {why}",
            where=engine.root() or engine.address,
            fix="Free space there: 'docker system df' shows what takes it; docs/how-to/docker.md.",
        )
    if any(words in why.lower() for words in _NO_FOLDER):
        return MachineError.of(
            f"{engine} does not see a folder of this machine: {why}",
            where=engine.address,
            fix="Build on the machine that the engine runs on.",
        )
    if pulling:
        message = f"{engine} cannot pull it: {why}"
        fix = advice_for(why, pulling, engine.processor)
        return MachineError.of(message, where=pulling, fix=fix)
    fix = "The log of the engine may say more."
    return BuildError.of(f"{engine} cannot do it: {why}", where=engine.address, fix=fix)
