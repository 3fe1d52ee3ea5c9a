"""A build in Docker Engine or podman: its containers, and the images that it made."""

from __future__ import annotations

import base64
import codecs
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from sifwright.errors import BuildError
from sifwright.host.engines.docker import Container, Docker
from sifwright.make_image.docker.archives import ENTER
from sifwright.make_image.resolve_request.build_context import BuildContext
from sifwright.make_image.run_steps import build_folder
from sifwright.render import build_files
from sifwright.system.files import sha256_of_json
from sifwright.system.liveness import ProcessIdentity, has_ended
from sifwright.system.tempdirs import name_folder_in_errors, workspace

# Each result of a step is an image of this name, tagged with the step's key.
REPOSITORY = "sifwright/step"
# Printed by render/templates/enter.sh; it is no line of the log. Any program of the container can
# print it. So the name is of a file in one folder, without a path.
_KEPT = re.compile(r"sifwright: kept ([A-Za-z0-9_-][A-Za-z0-9._-]{0,99}) ([A-Za-z0-9+/=]*)")
PREFIX = "sifwright-build-"


@dataclass(frozen=True, kw_only=True, slots=True)
class DockerBuild:
    """One build in the engine; `tags` are the tags of its results."""

    context: BuildContext
    engine: Docker
    # Images made without the cache are of this build alone.
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    tags: list[str] = field(default_factory=list)

    @property
    def mirrors(self) -> dict[str, str]:
        return build_folder.mirrors(self.context.header)

    @property
    def build_environment(self) -> dict[str, str]:
        """Return what decides a step's result beside the plan; see `step_key`."""
        around = {
            "processor": self.engine.processor,
            "engine": self.engine.product,
            "enter": build_files.package_text("render/templates/enter.sh"),
            "surround": build_files.package_text("render/templates/surround.sh"),
        }
        if self.context.options.format == "sif":
            # Packing mends the bytecode that pip writes then, which imports more slowly.
            around["epoch"] = str(self.context.options.epoch)
        if lock := self.context.options.lock:
            around["lock"] = lock.digest
        return around if self.context.options.cached else {**around, "nonce": self.nonce}

    def key(self, *facts: object) -> str:
        """Return the key of an image that these facts and the build's environment decide."""
        return sha256_of_json(*facts, self.build_environment)

    @contextmanager
    def run_archive(
        self, image: str, words: Sequence[str], archive: bytes
    ) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Run an archive's program in /.sifwright; raises `BuildError` if that fails.

        Yields the container, and the files that its command left for later steps.
        """
        binds = (bind.split(":") for bind in self.context.settings.binds)
        mounts = [(source, target, "ro" in options) for source, target, *options in binds]
        settings = Container(image=image, entrypoint=ENTER, command=words, mounts=mounts)
        with open_container(self.engine, settings) as container:
            self.engine.put(container, archive)
            output, status = self.run_to_end(container)
            if status != 0:
                raise BuildError(self.context.watcher.problem(f"{self.engine.product} failed"))
            yield container, output.kept

    def run_to_end(self, container: str) -> tuple[StepOutput, int]:
        """Run a container to its end; return its output and its exit status."""
        with self.context.log.open("a", encoding="utf-8") as log:
            output = StepOutput(log=log, on_line=self.context.watcher)
            status = self.engine.run(container, output)
            output.end()
        return output, status

    def commit(self, container: str, key: str, message: str) -> str:
        """Make an image of a container after a step; return its id."""
        self.tags.append(key)
        return self.engine.commit(container, REPOSITORY, key, f"sifwright: {message}")

    def tag_result(self, image: str, key: str) -> str:
        self.tags.append(key)
        self.engine.tag(image, REPOSITORY, key)
        return image

    def load(self, archive: Iterable[bytes]) -> str:
        try:
            return self.engine.load(archive)
        except ValueError as error:
            message = f"{self.engine} does not load an image: {error}"
            fix = "The log of the engine may say more."
            raise BuildError.of(message, where=self.engine.address, fix=fix) from None

    @contextmanager
    def archive_file(self, archive: Iterable[bytes], parent: Path, fix: str) -> Iterator[Path]:
        """Yield a tar archive as a private file; `fix` is advice for a full disk."""
        with workspace(parent) as folder:
            file = folder / "image.tar"
            with name_folder_in_errors(parent.parent, fix), file.open("wb") as sink:
                sink.writelines(archive)
            yield file.absolute()

    def find_result(self, key: str) -> str:
        """Return the image of the step with this key; empty if there is none."""
        return self.engine.identity(f"{REPOSITORY}:{key}")


@dataclass(kw_only=True)
class StepOutput:
    """A callable that takes the output in pieces of any size; `kept` is name -> text."""

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
        if match := _KEPT.fullmatch(line):
            with suppress(ValueError):
                data = base64.b64decode(match[2], validate=True)
                # Any bytes become text that JSON can hold, and the same bytes again (PEP 383).
                self.kept[match[1]] = data.decode(errors="surrogateescape")
                return
        self.log.write(f"{line}\n")
        self.log.flush()
        self.on_line(line)


@contextmanager
def open_container(engine: Docker, container: Container) -> Iterator[str]:
    """Yield the id of a container; it is gone afterwards, with all that runs in it.

    Its name holds the build's process; a label would get into the image.
    """
    name = f"{PREFIX}{ProcessIdentity.here().label}{secrets.token_hex(4)}"
    identity = engine.create(container, name)
    try:
        yield identity
    finally:
        engine.remove(identity)


def remove_stale(engine: Docker) -> None:
    """Remove the containers of builds that were killed on this machine.

    Builds in other containers count as running.
    """
    boot = ProcessIdentity.here().boot_id
    for name in engine.containers(PREFIX):
        label = name.removeprefix(PREFIX)
        if has_ended(label) or not label.startswith(boot):
            engine.remove(name)
