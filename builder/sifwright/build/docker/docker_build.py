"""A build in Docker Engine or podman: its containers, and the images that it made."""

from __future__ import annotations

import base64
import codecs
import re
import secrets
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sifwright.build.docker.archives import ENTER
from sifwright.build.steps import build_folder
from sifwright.errors import BuildError
from sifwright.host.engines.docker import Container
from sifwright.render import build_files
from sifwright.system.liveness import ProcessIdentity
from sifwright.system.tempdirs import name_folder_in_errors, workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import TextIO

    from sifwright.build.request.build_context import BuildContext
    from sifwright.host.engines.docker import Docker

# Each result of a step is an image of this name, tagged with the step's key.
REPOSITORY = "sifwright/step"
# Printed by render/templates/enter.sh; it is no line of the log. Any program of the
# container can say the same, so what is named is a file of one folder and nothing else.
_KEPT = re.compile(r"sifwright: kept ([A-Za-z0-9_-][A-Za-z0-9._-]{0,99}) ([A-Za-z0-9+/=]*)")
# Any bytes become text that JSON can hold, and the same bytes again (PEP 383).
_ANY = "surrogateescape"
PREFIX = "sifwright-build-"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRun:
    """A container whose command has ended well, and what that left for later steps."""

    container: str
    kept: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class DockerBuild:
    """One build in the engine; `tags` are those of the results that it made."""

    context: BuildContext
    engine: Docker
    # What is made without the cache is nobody else's.
    salt: str = field(default_factory=lambda: secrets.token_hex(16))
    tags: list[str] = field(default_factory=list)

    @property
    def machine(self) -> Path:
        return self.context.settings.machine

    @property
    def mirrors(self) -> dict[str, str]:
        return build_folder.mirrors(self.context.header)

    @property
    def surroundings(self) -> dict[str, str]:
        """Return what decides a step's result beside the plan; see `step_key`."""
        around = {
            "processor": self.engine.processor,
            "engine": self.engine.product,
            "enter": build_files.package_text("render/templates/enter.sh"),
            "surround": build_files.package_text("render/templates/surround.sh"),
        }
        return around if self.context.options.cached else {**around, "salt": self.salt}

    def container(self, image: str, words: Sequence[str]) -> Container:
        """Return a container that runs the program in /.sifwright, with the machine's binds."""
        mounts = [_mount(bind) for bind in self.context.settings.binds]
        return Container(
            image=image, name=container_name(), entrypoint=ENTER, command=words, mounts=mounts
        )

    @contextmanager
    def ran(self, image: str, words: Sequence[str], archive: bytes) -> Iterator[StepRun]:
        """Run what an archive brings; raises `BuildError` if that fails."""
        with open_container(self.engine, self.container(image, words)) as container:
            self.engine.put(container, archive)
            output, status = self.follow(container)
            if status != 0:
                raise BuildError(self.context.watcher.problem(f"{self.engine.product} failed"))
            yield StepRun(container=container, kept=output.kept)

    def follow(self, container: str) -> tuple[StepOutput, int]:
        """Run a container to its end; what it said, and its exit status."""
        with self.context.log.open("a", encoding="utf-8") as log:
            output = StepOutput(log=log, on_line=self.context.watcher)
            status = self.engine.run(container, output)
            output.end()
        return output, status

    def commit(self, container: str, key: str, message: str) -> str:
        """Make the result of a step of what has run; its id."""
        self.tags.append(key)
        return self.engine.commit(container, REPOSITORY, key, f"sifwright: {message}")

    def keep(self, image: str, key: str) -> str:
        """Let an image be the result of a step."""
        self.tags.append(key)
        self.engine.tag(image, REPOSITORY, key)
        return image

    def forget(self) -> None:
        """Take the names away that were given here; the images go where nothing else needs them."""
        for tag in reversed(self.tags):
            self.engine.untag(f"{REPOSITORY}:{tag}")

    def saved(self, image: str, folder: Path, fix: str) -> AbstractContextManager[Path]:
        """Save an image as a docker-archive; see `spooled`."""
        return self.spooled(self.engine.save(image), folder, fix)

    def load(self, archive: Iterable[bytes]) -> str:
        """Load a docker-archive that was made here; the id of its image."""
        try:
            return self.engine.load(archive)
        except ValueError as error:
            message = f"{self.engine} does not load an image: {error}"
            fix = "The log of the engine may say more."
            raise BuildError.of(message, where=self.engine.address, fix=fix) from None

    @contextmanager
    def spooled(self, archive: Iterable[bytes], parent: Path, fix: str) -> Iterator[Path]:
        """Yield a tar archive as a private file; `fix` is advice for a full disk."""
        with workspace(parent) as folder:
            file = folder / "image.tar"
            with name_folder_in_errors(parent.parent, fix), file.open("wb") as sink:
                for chunk in archive:
                    sink.write(chunk)
            yield file.absolute()

    def known(self, key: str) -> str:
        """Return the image of the step with this key; empty if there is none."""
        return self.engine.identity(f"{REPOSITORY}:{key}")


def _mount(bind: str) -> tuple[str, str, bool]:
    """Return source, target and mode of a bind in Apptainer's notation."""
    source, target, *options = bind.split(":")
    return source, target, "ro" in options


@dataclass(kw_only=True)
class StepOutput:
    """Called with what comes, in whatever pieces; `kept` is name -> text."""

    log: TextIO
    on_line: Callable[[str], None]
    kept: dict[str, str] = field(default_factory=dict)
    _rest: str = ""
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def __call__(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + self._decoder.decode(chunk)).split("\n")
        for line in lines:
            self._line(line)

    def end(self) -> None:
        """Take the last line, which has no line break."""
        if self._rest:
            self._line(self._rest)
            self._rest = ""

    def _line(self, line: str) -> None:
        match = _KEPT.fullmatch(line)
        if match and (data := _decoded(match[2])) is not None:
            self.kept[match[1]] = data
            return
        self.log.write(f"{line}\n")
        self.log.flush()
        self.on_line(line)


def _decoded(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode(errors=_ANY)
    except ValueError:
        return None


def container_name() -> str:
    """Return a name that holds the build's process; a label would get into the image."""
    own = ProcessIdentity.here()
    return f"{_neighbours(own)}{own.pid}-{own.started}-{secrets.token_hex(4)}"


def _neighbours(own: ProcessIdentity) -> str:
    """Return the prefix of names of builds whose processes we can see."""
    return f"{PREFIX}{own.boot[:8]}-{own.namespace}-"


@contextmanager
def open_container(engine: Docker, container: Container) -> Iterator[str]:
    """Yield the id of a container; it is gone afterwards, whatever runs in it."""
    identity = engine.create(container)
    try:
        yield identity
    finally:
        engine.remove(identity)


def reclaim(engine: Docker) -> None:
    """Remove the containers of builds that were killed on this machine."""
    for name in engine.containers(PREFIX):
        if _is_left(name):
            engine.remove(name)


def _is_left(name: str) -> bool:
    """Return whether the build has ended; builds in other containers count as running."""
    own = ProcessIdentity.here()
    match = re.match(rf"{PREFIX}(\w+)-(\d+)-(\d+)-(\d+)-", name)
    if match is None:
        return False
    boot, namespace, pid, started = match[1], *map(int, match.groups()[1:])
    if boot != own.boot[:8]:
        return True
    return namespace == own.namespace and not replace(own, pid=pid, started=started).runs()
