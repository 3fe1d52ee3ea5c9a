"""Run the steps of a plan in containers, each on the image that the one before it made."""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.build.docker import archives, step_facts
from sifwright.build.docker.docker_base import base
from sifwright.build.docker.step_facts import StepRecord
from sifwright.build.steps import step_key
from sifwright.render import build_files
from sifwright.system.tempdirs import workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sifwright.build.docker.docker_context import DockerBuildContext
    from sifwright.build.request.first_use import SourceDigest

__all__ = ["BuiltImage", "tree"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltImage:
    """The image with all files of the plan, and how it came about.

    `base` is the image that the plan starts from; `keys` are those of the steps, by layer.
    """

    image: str
    base: str
    keys: Mapping[str, str]
    used: tuple[SourceDigest, ...]


@contextmanager
def tree(work: DockerBuildContext) -> Iterator[BuiltImage]:
    """Yield the image of all steps; those that are there already do not run.

    Raises `BuildError` where a step fails; what was made before stays for the next build, unless
    there is to be no cache.
    """
    try:
        yield _Steps(work).tree()
    finally:
        if not work.cached:
            work.forget()


@dataclass(frozen=True, slots=True)
class _Steps:
    work: DockerBuildContext

    def tree(self) -> BuiltImage:
        start = below = base(self.work)
        kept: dict[str, str] = {}
        keys: dict[str, str] = {}
        used: list[SourceDigest] = []
        for number, step in enumerate(self.work.plan.steps):
            below, facts = self._result(number, below, kept)
            keys[step.layer.name] = below
            kept = facts.kept_here(self.work.mirrors)
            used += facts.used
        return BuiltImage(image=self._closed(below), base=start, keys=keys, used=tuple(used))

    def _result(self, number: int, below: str, kept: Mapping[str, str]) -> tuple[str, StepRecord]:
        work, step = self.work, self.work.plan.steps[number]
        key = step_key.key(step, work.surroundings, below)
        work.watcher.timer.start(step.layer.name)
        image = work.known(key)
        facts = step_facts.read(image) if image else None
        if facts and facts.fits(work.inputs.record):
            work.watcher.timer.finish("cached")
            return image, facts
        made = self._made(number, below, kept, key)
        work.watcher.timer.finish("done")
        return made

    def _made(
        self, number: int, below: str, kept: Mapping[str, str], key: str
    ) -> tuple[str, StepRecord]:
        work, step = self.work, self.work.plan.steps[number]
        first = len(work.watcher.used)
        with workspace(work.folder) as scratch:
            archive = archives.step(scratch, work.plan, number, work.machine, kept)
            with work.ran(below, (step.layer.name, step.id), archive) as ran:
                image = work.commit(ran.container, key, f"layer {step.layer.name}, step {step.id}")
        used = tuple(work.watcher.used[first:])
        facts = StepRecord(kept=ran.kept, used=used, mirrors=work.mirrors)
        step_facts.write(image, facts)
        return image, facts

    def _closed(self, below: str) -> str:
        """With the tests and the plan."""
        work, files = self.work, list(build_files.kept(self.work.plan))
        texts = [[below, archives.ENTER], *([one.path, one.data.decode()] for one in files)]
        key = hashlib.sha256(json.dumps([work.surroundings, *texts]).encode()).hexdigest()
        if found := work.known(key):
            return found
        with workspace(work.folder) as scratch:
            archive = archives.closing(scratch, files)
            with work.ran(below, ("sifwright", work.plan.id), archive) as ran:
                return work.commit(ran.container, key, f"tests and plan {work.plan.id}")
