"""The graph of jobs that make what several images lack: a step that they share runs once."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sifwright.catalog.layer_builds import Resources

SMALL = Resources()
# The name of the task that assembles, tests and publishes.
IMAGE = "image"


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A missing step, or an image to assemble; `key` is the same for the same work.

    `words` are those of a command that does it and everything before it. `parent` is the key of the
    task before, or empty. `image` is SITE/IMAGE or SITE/IMAGE@VALUE.
    """

    key: str
    name: str
    parent: str
    image: str
    words: tuple[str, ...]
    resources: Resources = SMALL


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildJob:
    """A chain of tasks that run in one job, for one image or for several.

    `after` is the key of the job before, or the id of a job that was submitted earlier.
    """

    tasks: tuple[Task, ...]
    images: tuple[str, ...]
    after: str = ""

    @property
    def key(self) -> str:
        return self.tasks[-1].key

    @property
    def name(self) -> str:
        """Return the name of the last step, or SITE-IMAGE: schedulers refuse other characters."""
        last = self.tasks[-1]
        return re.sub("[/@]", "-", last.image) if last.name == IMAGE else last.name

    @property
    def resources(self) -> Resources:
        """Return those of its tasks, which are alike; the hours add up."""
        first = self.tasks[0].resources
        hours = sum(task.resources.hours for task in self.tasks)
        return Resources(cores=first.cores, memory_gb=first.memory_gb, hours=hours)


def build_jobs(chains: Sequence[Sequence[Task]], queued: Mapping[str, str]) -> list[BuildJob]:
    """Return the jobs in an order in which each comes after the job that it waits for.

    `chains` has the missing tasks of each image. `queued` leads from the key of a task to the id of
    the job that does it already.
    """
    tasks = {task.key: task for chain in chains for task in chain}
    children = Counter(task.parent for task in tasks.values())
    groups: dict[str, list[Task]] = {}
    group_of: dict[str, str] = {}
    for key, task in tasks.items():
        if key in queued:
            continue
        joins = _joins(task, tasks, children) and task.parent in group_of
        group_of[key] = group_of[task.parent] if joins else key
        groups.setdefault(group_of[key], []).append(task)
    last = {first: members[-1].key for first, members in groups.items()}
    return [
        BuildJob(
            tasks=tuple(members),
            images=tuple(
                chain[0].image
                for chain in chains
                if any(task.key == members[-1].key for task in chain)
            ),
            after=last.get(group_of.get(parent, ""), "") or queued.get(parent, ""),
        )
        for members in groups.values()
        for parent in [members[0].parent]
    ]


def _joins(task: Task, tasks: Mapping[str, Task], children: Mapping[str, int]) -> bool:
    """Return whether a task runs in its parent's job: nothing else waits for that parent."""
    parent = tasks.get(task.parent)
    if parent is None or children[task.parent] > 1:
        return False
    mine, other = task.resources, parent.resources
    return (mine.cores, mine.memory_gb) == (other.cores, other.memory_gb)
