"""An edit of the last layer, against `buildah build --layers` and making a SIF of what it built.

The layers below the last one are a single cached layer of buildah's, with the same files.
"""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import shutil
import subprocess
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import yaml
from edits import CHANGED
from figures import Result, ratio
from plain import program
from project import IMAGE, LAST, Project
from storage import BASE, Storage
from usage import measured, resources

from sifwright.images.sif import sif_file as sif
from sifwright.make_image.pack_layers.pack_files import write_files
from sifwright.render import build_files
from sifwright.system import user_namespace
from sifwright.system.tempdirs import temporary_root, workspace

if TYPE_CHECKING:
    from pathlib import Path

    from figures import Figure, Settings
    from usage import Usage

__all__ = ["by_buildah"]

# P2 of the figures to reach.
EDIT = 0.1
LOWER = "bench-lower"
OURS, BUILDAH, CACHED = "sifwright, layered", "buildah and conversion", "buildah without conversion"
RECIPE = f"FROM localhost/{BASE}\nCOPY build {{0}}\nRUN sh {{0}}/run && rm -r {{0}}\n"
UNPACK = 'unsquashfs -quiet -no-progress -offset "$1" -dest tree "$0"; tar -cf tree.tar -C tree .'


@dataclass(kw_only=True)
class _Buildah:
    """The last layer of the project as a Containerfile, and SIFs of it."""

    project: Project
    storage: Storage
    engine: str
    work_dir: Path
    edits: list[Usage] = field(default_factory=list)
    no_ops: list[Usage] = field(default_factory=list)

    @property
    def sif(self) -> Path:
        return self.work_dir / "made.sif"

    def write_context(self) -> None:
        """Write the current files of the last step, and the script that runs it."""
        plan = self.project.plan()
        context, last = self.work_dir / "context", len(plan.steps) - 1
        build = context / "build"
        shutil.rmtree(build, ignore_errors=True)
        (build / "tmp").mkdir(parents=True)
        files = [*build_files.programs(), *build_files.of_step(plan.steps[last])]
        write_files(build, files, build_files.BUILD)
        (build / "run").write_text(build_files.script(plan, last), encoding="utf-8")
        (context / "Containerfile").write_text(RECIPE.format(build_files.BUILD), encoding="utf-8")

    def convert(self) -> Usage:
        """Build all that is not cached, and make the SIF again."""

        def run() -> None:
            self.storage.build(self.work_dir / "context")
            self.storage.to_sif(self.engine, self.sif)

        return measured(run, self.work_dir, temporary_root())[1]

    def build(self) -> Usage:
        """Find that nothing has changed."""
        return measured(lambda: self.storage.build(self.work_dir / "context"), self.work_dir)[1]


def by_buildah(settings: Settings) -> Result:
    """Measure builds after an edit of the run scripts, and builds without a change, in turn."""
    engine = program(settings)
    with (
        workspace(settings.folder) as work_dir,
        closing(Storage.open(work_dir / "storage")) as storage,
    ):
        project = Project.kept(settings)
        buildah = _Buildah(project=project, storage=storage, engine=engine, work_dir=work_dir)
        settings.note("buildah: the layers below the last one, and a first SIF …")
        _add_base(project, storage, work_dir)
        buildah.write_context()
        buildah.convert()
        settings.note("sifwright and buildah in turn …")
        figures = _in_turn(buildah)
        return Result(figures=figures, details={"buildah": storage.facts()})


def _add_base(project: Project, storage: Storage, work_dir: Path) -> None:
    """Add an image of all layers but the last, with their files."""
    images = project.folder / "defs" / "images"
    lower = yaml.safe_load((images / f"{IMAGE}.yaml").read_text(encoding="utf-8"))
    lower["layers"].pop()
    (images / f"{LOWER}.yaml").write_text(yaml.safe_dump(lower), encoding="utf-8")
    project.build(image=LOWER, layout="flat")
    file = project.sif("flat", LOWER)
    offset = str(sif.partitions(file)[0].offset)
    command = [*user_namespace.prefix(), "bash", "-euc", UNPACK, str(file), offset]
    base = work_dir / "base"
    base.mkdir()
    subprocess.run(command, check=True, cwd=base, env=user_namespace.environment())
    storage.add_base(base)


def _in_turn(buildah: _Buildah) -> list[Figure]:
    project = buildah.project
    project.build()
    edits, no_ops = [], []
    for _ in range(3):
        no_ops.append(project.build(*CHANGED).usage)
        buildah.no_ops.append(buildah.build())
        project.edit(LAST)
        edits.append(project.build(*CHANGED).usage)
        buildah.write_context()
        buildah.edits.append(buildah.convert())
    _check(buildah)
    text = "s, to a SIF, tests of what ran"
    edit = {OURS: _seconds(edits), BUILDAH: _seconds(buildah.edits)}
    no_op = {OURS: _seconds(no_ops), CACHED: _seconds(buildah.no_ops)}
    return [
        ratio("last layer / buildah and conversion", text, edit, EDIT),
        ratio("nothing changed / buildah", "s, buildah makes no SIF", no_op),
        *resources("by buildah", {OURS: [*edits, *no_ops]}, {BUILDAH: buildah.edits}),
    ]


def _check(buildah: _Buildah) -> None:
    """Check that both images have the edit."""
    wanted = (buildah.project.folder / LAST).read_text(encoding="utf-8")
    for file in (buildah.project.sif("layered"), buildah.sif):
        command = [buildah.engine, "exec", "--no-home", str(file), "cat", "/runscripts/get-master"]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
        assert text == wanted, f"{file} is not of the last edit"


def _seconds(usages: list[Usage]) -> list[float]:
    return [usage.seconds for usage in usages]
