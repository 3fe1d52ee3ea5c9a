"""Steps that Docker Engine or podman runs in containers, each on the image of the step before."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sifwright.errors import BuildError
from sifwright.host.engines.docker import Container, Docker
from sifwright.images.contents.image_tree import BadImage, ImageTree, stacked
from sifwright.images.contents.inventory import Inventory, inventory
from sifwright.images.oci import layer
from sifwright.images.oci.streams import PieceStream
from sifwright.make_image.attest.write_statements import Statements
from sifwright.make_image.docker import archives
from sifwright.make_image.docker.configure_image import configure_image
from sifwright.make_image.docker.docker_base import prepare_base
from sifwright.make_image.docker.docker_build import REPOSITORY, DockerBuild, open_container
from sifwright.make_image.resolve_request import base_image
from sifwright.make_image.resolve_request.build_context import BuildContext
from sifwright.make_image.run_steps import build_folder, step_keys
from sifwright.make_image.run_steps.step_engine import Artifact
from sifwright.plan.model import Plan
from sifwright.plan.source_digest import SourceDigest
from sifwright.render import build_files, dockerfile, oci_config, singularity_metadata
from sifwright.system import cache_folder, files, small_file
from sifwright.system.tempdirs import workspace

# A folder of the user's cache. It has the apt sources that a layer leaves for later steps. They
# name this machine's mirrors, so they are never in the image.
_FORMAT = "docker-1"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepImage:
    """The image of a step.

    `kept` is what the step left for later ones, `mirrors` are Debian's that are named in it.
    """

    image: str
    kept: Mapping[str, str] = field(default_factory=dict)
    used: Sequence[SourceDigest] = ()
    mirrors: Mapping[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class DockerSteps:
    """The step engine that runs uncached steps in containers, and makes an image of the engine.

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
        last = below[-1] if below else StepImage(image=self.base)
        lower, kept = last.image, build_folder.moved(last.kept, last.mirrors, build.mirrors)
        key = step_keys.step_key(step, build.build_environment, lower)
        build.context.watcher.timer.start(step.layer.name)
        image = build.find_result(key)
        step_image, first_use = _read(image) if image else None, build.context.inputs.record
        if step_image and all(
            first_use.get(used.key, used.digest) == used.digest for used in step_image.used
        ):
            build.context.watcher.timer.finish("cached")
            return step_image
        result = self._run(number, lower, kept, key)
        build.context.watcher.timer.finish("done")
        return result

    def _run(self, number: int, lower: str, kept: Mapping[str, str], key: str) -> StepImage:
        build, step, watcher = self.build, self.plan.steps[number], self.build.context.watcher
        first = len(watcher.used)
        with workspace(build.context.work_dir) as scratch:
            archive = archives.step(
                scratch / "build", self.plan, number, build.context.settings, kept
            )
            with build.run_archive(lower, (step.layer.name, step.id), archive) as (container, left):
                image = build.commit(container, key, f"layer {step.layer.name}, step {step.id}")
        used = tuple(watcher.used[first:])
        result = StepImage(image=image, kept=left, used=used, mirrors=build.mirrors)
        _file(image).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.write(_file(image), json.dumps(asdict(result)).encode(), mode=0o600)
        return result

    def finish(self, results: Sequence[StepImage]) -> Artifact:
        """Add the tests, the plan and the configuration to the image of the last step."""
        engine, tree = self.build.engine, self.with_plan(results[-1].image)
        image = configure_image(self.build, tree, self.base)
        statements = Statements.of(self.build.context, self.used(results), self._packages(image))
        statements.provenance({self.build.context.output.tag: image.removeprefix("sha256:")})
        statements.write(self.build.context.staging)
        facts = {"image_id": image, "bytes": engine.size(image), "engine": str(engine)}
        files = {"Dockerfile": dockerfile.dockerfile(self.plan, self._reference())}
        keys = [result.image for result in results]
        return Artifact(keys=keys, used=self.used(results), facts=facts, files=files)

    def _packages(self, image: str) -> ImageTree | None:
        """Return the files that say what is installed; None for a tree that cannot be read."""
        engine = self.build.engine
        with open_container(engine, Container(image=image)) as container, suppress(BadImage):
            return stacked([layer.read(PieceStream(engine.export(container)))])
        return None

    def installed(self, artifact: Artifact) -> Inventory:
        if tree := self._packages(str(artifact.facts["image_id"])):
            return inventory(tree)
        raise BuildError.of("its files cannot be read", where=self.build.context.output.tag)

    def used(self, results: Sequence[StepImage]) -> list[SourceDigest]:
        return [source for result in results for source in result.used]

    def with_plan(self, lower: str) -> str:
        build, files = self.build, list(build_files.list_kept_files(self.plan))
        key = build.key(lower, archives.ENTER, [[file.path, file.data.decode()] for file in files])
        if image := build.find_result(key):
            return image
        with workspace(build.context.work_dir) as scratch:
            archive = archives.closing(scratch / "build", files)
            with build.run_archive(lower, ("sifwright", self.plan.id), archive) as (container, _):
                return build.commit(container, key, f"tests and plan {self.plan.id}")

    def _reference(self) -> str:
        start = oci_config.start(self.plan)
        if isinstance(start, oci_config.Local):
            return self.base
        reference = base_image.redirected_reference(self.plan.site, start.name)
        if isinstance(start, oci_config.Registry):
            reference = reference.at(self.build.context.inputs.digest)
        return str(reference)

    def test(self, product: Artifact, layers: Sequence[str] | None) -> int:
        """Run the tests as the image's own user, in a tree that is read-only like a SIF's."""
        script = singularity_metadata.section(self.build.context.definition, "test")
        config = oci_config.image_config(self.plan, {})
        container = Container(
            image=str(product.facts["image_id"]),
            entrypoint=("/bin/sh", "-c"),
            command=(script,),
            user=config.user,
            working_dir=config.working_dir,
            env={} if layers is None else {"SIFWRIGHT_TESTS": " ".join(layers)},
            read_only=True,
        )
        with open_container(self.build.engine, container) as identity:
            _, status = self.build.run_to_end(identity)
        return status


@contextmanager
def open_engine(context: BuildContext, engine: Docker) -> Iterator[DockerSteps]:
    """Yield the engine; its images stay for the next build, unless there is to be no cache."""
    build = DockerBuild(context=context, engine=engine)
    try:
        yield DockerSteps(build=build)
    finally:
        # Without names, the images go where nothing else needs them.
        for tag in () if context.options.cached else reversed(build.tags):
            engine.untag(f"{REPOSITORY}:{tag}")


def _file(image: str) -> Path:
    return cache_folder.root().with_name(_FORMAT) / f"{image.removeprefix('sha256:')}.json"


def _read(image: str) -> StepImage | None:
    """Read what is known of an image; None if that is nothing."""
    try:
        data = small_file.read_json(_file(image))
        used = [SourceDigest(**source) for source in data["used"]]
        kept, mirrors = dict(data["kept"]), dict(data["mirrors"])
        return StepImage(image=image, kept=kept, used=used, mirrors=mirrors)
    except (OSError, ValueError, KeyError, TypeError):
        return None
