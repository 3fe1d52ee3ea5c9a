"""Steps that Docker Engine or podman runs in containers, each on the image of the step before."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from sifwright.build.docker import archives
from sifwright.build.docker.configure import configure_image
from sifwright.build.docker.docker_base import prepare_base
from sifwright.build.docker.docker_build import DockerBuild, container_name, open_container
from sifwright.build.engine import Artifact
from sifwright.build.request import base_image
from sifwright.build.request.first_use import SourceDigest
from sifwright.build.steps import build_folder, cached_steps
from sifwright.host.engines.docker import Container
from sifwright.render import build_files, dockerfile, oci_config, singularity_metadata
from sifwright.system import cache_folder, files
from sifwright.system.tempdirs import workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from sifwright.build.request.build_context import BuildContext
    from sifwright.host.engines.docker import Docker
    from sifwright.plan.model import Plan

# A folder of the user's cache. Apt's sources that a layer leaves for later steps may hold the
# password of a mirror, so they are never in the image.
_FORMAT = "docker-1"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepImage:
    """The image that a step made, and what else is known of it."""

    image: str
    record: StepRecord


@dataclass(kw_only=True)
class DockerSteps:
    """Runs the steps that the engine has no image of, and makes an image of that engine.

    `base` is the id of the image that the first step runs on.
    """

    build: DockerBuild
    base: str = ""

    @property
    def plan(self) -> Plan:
        return self.build.context.plan

    def run(self, number: int, below: Sequence[StepImage]) -> StepImage:
        build, step = self.build, self.plan.steps[number]
        if not below:
            self.base = prepare_base(build)
        lower = below[-1].image if below else self.base
        kept = below[-1].record.kept_here(build.mirrors) if below else {}
        key = cached_steps.step_key(step, build.surroundings, lower)
        build.context.watcher.timer.start(step.layer.name)
        image = build.known(key)
        record = read_record(image) if image else None
        if record and record.fits(build.context.inputs.record):
            build.context.watcher.timer.finish("cached")
            return StepImage(image=image, record=record)
        result = self._run(number, lower, kept, key)
        build.context.watcher.timer.finish("done")
        return result

    def _run(self, number: int, lower: str, kept: Mapping[str, str], key: str) -> StepImage:
        build, step, watcher = self.build, self.plan.steps[number], self.build.context.watcher
        first = len(watcher.used)
        with workspace(build.context.work_dir) as scratch:
            archive = archives.step(scratch, self.plan, number, build.machine, kept)
            with build.ran(lower, (step.layer.name, step.id), archive) as ran:
                message = f"layer {step.layer.name}, step {step.id}"
                image = build.commit(ran.container, key, message)
        used = tuple(watcher.used[first:])
        record = StepRecord(kept=ran.kept, used=used, mirrors=build.mirrors)
        write_record(image, record)
        return StepImage(image=image, record=record)

    def finish(self, results: Sequence[StepImage]) -> Artifact:
        """Add the tests, the plan and the configuration to the image of the last step."""
        engine, tree = self.build.engine, self.with_plan(results[-1].image)
        image = configure_image(self.build, tree, self.base)
        facts = {"image_id": image, "bytes": engine.size(image), "engine": str(engine)}
        files = {"Dockerfile": dockerfile.dockerfile(self.plan, self._reference())}
        return Artifact(keys=self.keys(results), used=self.used(results), facts=facts, files=files)

    def keys(self, results: Sequence[StepImage]) -> dict[str, str]:
        """Return the images of the steps, by layer."""
        names = (step.layer.name for step in self.plan.steps)
        return dict(zip(names, (result.image for result in results), strict=True))

    def used(self, results: Sequence[StepImage]) -> list[SourceDigest]:
        """Return the sources of all steps."""
        return [source for result in results for source in result.record.used]

    def with_plan(self, lower: str) -> str:
        """Return an image with the tests and the plan."""
        build, files = self.build, list(build_files.kept(self.plan))
        texts = [[lower, archives.ENTER], *([file.path, file.data.decode()] for file in files)]
        key = hashlib.sha256(json.dumps([build.surroundings, *texts]).encode()).hexdigest()
        if image := build.known(key):
            return image
        with workspace(build.context.work_dir) as scratch:
            archive = archives.closing(scratch, files)
            with build.ran(lower, ("sifwright", self.plan.id), archive) as ran:
                return build.commit(ran.container, key, f"tests and plan {self.plan.id}")

    def _reference(self) -> str:
        """Return the name of the base image in a Dockerfile."""
        start = oci_config.start(self.plan)
        if isinstance(start, oci_config.Local):
            return self.base
        reference = base_image.redirected_reference(self.plan.site, start.name)
        if isinstance(start, oci_config.Registry):
            reference = reference.at(self.build.context.inputs.digest)
        return str(reference)

    def test(self, artifact: Artifact, layers: Sequence[str] | None) -> int:
        """Run the tests as the image's own user, in a tree that is read-only like a SIF's."""
        script = singularity_metadata.section(self.build.context.definition, "test")
        config = oci_config.image_config(self.plan, {})
        container = Container(
            image=str(artifact.facts["image_id"]),
            name=container_name(),
            entrypoint=("/bin/sh", "-c"),
            command=(script,),
            user=config.user,
            working_dir=config.working_dir,
            env={} if layers is None else {"SIFWRIGHT_TESTS": " ".join(layers)},
            read_only=True,
        )
        with open_container(self.build.engine, container) as identity:
            _, status = self.build.follow(identity)
        return status

    def name(self, artifact: Artifact) -> None:
        repository, _, tag = self.build.context.output.tag.rpartition(":")
        self.build.engine.tag(str(artifact.facts["image_id"]), repository, tag)


@contextmanager
def open_engine(context: BuildContext, engine: Docker) -> Iterator[DockerSteps]:
    """Yield the engine; its images stay for the next build, unless there is to be no cache."""
    with open_build(context, engine) as build:
        yield DockerSteps(build=build)


@contextmanager
def open_build(context: BuildContext, engine: Docker) -> Iterator[DockerBuild]:
    build = DockerBuild(context=context, engine=engine)
    try:
        yield build
    finally:
        if not context.options.cached:
            build.forget()


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """`kept` is what the step left for later ones, `mirrors` are Debian's that are named in it."""

    kept: Mapping[str, str]
    used: Sequence[SourceDigest]
    mirrors: Mapping[str, str]

    def fits(self, record: Mapping[str, str]) -> bool:
        """Return whether its sources have the digests of their first use here."""
        return all(record.get(source.key, source.digest) == source.digest for source in self.used)

    def kept_here(self, mirrors: Mapping[str, str]) -> dict[str, str]:
        """Return the files with this machine's mirrors in place of those they had."""
        return build_folder.moved(self.kept, self.mirrors, mirrors)


def _folder() -> Path:
    return cache_folder.root().with_name(_FORMAT)


def _file(image: str) -> Path:
    return _folder() / f"{image.removeprefix('sha256:')}.json"


def read_record(image: str) -> StepRecord | None:
    """Return the record of an image; None if there is none."""
    try:
        data = json.loads(_file(image).read_text())
        used = [SourceDigest(**source) for source in data["used"]]
        return StepRecord(kept=dict(data["kept"]), used=used, mirrors=dict(data["mirrors"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_record(image: str, facts: StepRecord) -> None:
    _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    data = json.dumps(asdict(facts)).encode()
    files.write(_file(image), data, mode=0o600)
