"""The recipe folder: a definition file, a Dockerfile, and the files that both copy."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sifwright.catalog.model import LayerFile
from sifwright.plan.model import Plan
from sifwright.render import build_files, dockerfile, oci_config
from sifwright.render.definition import folder_definition


def definition_files(plan: Plan, machine: Mapping[str, str]) -> Iterator[LayerFile]:
    """Yield the files of the folder without a Dockerfile, by their paths in it.

    Raises the errors of `definition.definition`.
    """
    yield LayerFile.of_text(f"{plan.image.name}.def", folder_definition(plan, machine))
    yield LayerFile(path=build_files.EMPTY, data=b"")
    names = build_files.needed_programs(plan)
    yield from _copied(plan, build_files.programs(names))


def dockerfile_files(plan: Plan, base: str) -> Iterator[LayerFile]:
    """Yield the files of the folder with a Dockerfile alone; `base` is the image of its FROM.

    Raises `PlanError` for plans that no Dockerfile can express.
    """
    copied = list(_copied(plan, oci_config.programs(plan)))
    yield from dockerfile.files(plan, base, copied)
    yield from copied


def _copied(plan: Plan, programs: Iterable[LayerFile]) -> Iterator[LayerFile]:
    yield from _moved(programs, build_files.BUILD, "runner")
    for step in plan.steps:
        yield from _moved(build_files.of_step(step), build_files.BUILD, "")
    yield from _moved(build_files.list_kept_files(plan), "/opt/sifwright", "kept")


def _moved(files: Iterable[LayerFile], start: str, folder: str) -> Iterator[LayerFile]:
    for file in files:
        yield replace(file, path=f"{folder}{file.path.removeprefix(start)}".lstrip("/"))
