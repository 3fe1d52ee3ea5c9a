"""The tasks that an image, or an installation on the host, lacks."""

from collections.abc import Iterator, Sequence

from sifwright.catalog.layer_builds import Resources
from sifwright.launch.submit.graph import IMAGE, Task
from sifwright.make_image.cache.store import Store
from sifwright.make_image.resolve_request.build_request import BuildRequest
from sifwright.make_image.resolve_request.recorded_inputs import Inputs
from sifwright.make_image.run_steps.step_keys import CachedSteps
from sifwright.plan.model import Plan
from sifwright.system.files import sha256_of_json


def image_tasks(request: BuildRequest, words: Sequence[str]) -> Iterator[Task]:
    """Yield the missing steps and the image; nothing if it is up to date.

    `words` are those of the command `build` for this image.
    """
    if request.is_current and not request.options.force:
        return
    plan, parent = request.plan, ""
    image = f"{plan.site.name}/{request.output.folder.name}"
    inputs = Inputs.recorded(request.base, request.output.pins_folder)
    cached = len(CachedSteps.of(plan.site, inputs, Store.look()).leading(plan))
    for step in plan.steps[cached:]:
        key = sha256_of_json(step.id, plan.site.processor, plan.site.compression)
        layer = step.layer.name
        yield Task(
            key=key,
            name=layer,
            parent=parent,
            image=image,
            words=(*words, "--until", layer),
            resources=step.layer.resources,
        )
        parent = key
    key = sha256_of_json(str(request.output.folder.absolute()), plan.id, dict(request.expected))
    yield Task(key=key, name=IMAGE, parent=parent, image=image, words=tuple(words))


def installation_task(plan: Plan, folder: str, words: Sequence[str]) -> Task:
    """Return the task of an installation: one job, which goes on where another one ended."""
    wanted = [step.layer.resources for step in plan.steps]
    resources = Resources(
        cores=max(item.cores for item in wanted),
        memory_gb=max(item.memory_gb for item in wanted),
        hours=sum(item.hours for item in wanted),
    )
    return Task(
        key=sha256_of_json(folder, plan.id),
        name="install",
        parent="",
        image=f"{plan.site.name}/{plan.image.name}",
        words=tuple(words),
        resources=resources,
    )
