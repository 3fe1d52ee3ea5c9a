"""Write the recipe folder of a plan: a definition file, a Dockerfile, and the files they copy."""

import os
import shlex
import tempfile
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path

from sifwright.catalog import image_name
from sifwright.catalog.model import LayerFile
from sifwright.errors import MachineError, PlanError, UsageError
from sifwright.make_image.pack_layers.pack_files import write_files
from sifwright.make_image.resolve_request import base_image, host_settings
from sifwright.make_image.resolve_request.base_image import base_image_of
from sifwright.make_image.resolve_request.recorded_inputs import Inputs
from sifwright.plan.model import Plan
from sifwright.render import build_files, dockerfile, oci_config, recipe
from sifwright.render.definition import folder_definition
from sifwright.system import files

# Below build/SITE/IMAGE.
FOLDER = "recipe"


def text(plan: Plan, form: str, record: Path) -> str:
    """Return the `definition` or the `dockerfile` of the folder, and ask no registry.

    `record` is that of `write`.
    """
    if form == "definition":
        return folder_definition(plan, header(plan, record))
    return dockerfile.dockerfile(plan, _local(plan) or _located(plan, _recorded(plan, record)))


def write(
    plan: Plan, form: str, folder: Path, record: Path, note: Callable[[str], None]
) -> Collection[LayerFile]:
    """Replace the folder and return its files; it is whole at any moment, the old or the new one.

    `form` is `definition` or `dockerfile`. The folder has the other one as well if the plan and
    this machine allow it. `record` is the folder of the image, which names the base of earlier
    builds. `note` reports a registry that does not answer. Raises `UsageError` for a folder with
    other files, and the errors of `Inputs.asked`.
    """
    _refuse_foreign(folder)
    inputs = _recorded(plan, record)
    if inputs and form == "dockerfile":
        inputs = inputs.with_current_digest(note)

    def by_path(kind: str) -> dict[str, LayerFile]:
        if kind == "definition":
            contained = recipe.definition_files(plan, _header(plan, inputs))
        else:
            base = _local(plan) or _located(plan, inputs)
            contained = recipe.dockerfile_files(plan, base)
        return {file.path: file for file in contained}

    contents: dict[str, LayerFile] = {}
    with suppress(MachineError, PlanError):
        contents |= by_path("dockerfile" if form == "definition" else "definition")
    contents |= by_path(form)
    replace(folder, contents.values())
    return contents.values()


def header(plan: Plan, record: Path) -> dict[str, str]:
    """Return the machine's values, and the base image by its digest if builds have recorded it."""
    return _header(plan, _recorded(plan, record))


def _header(plan: Plan, inputs: Inputs | None) -> dict[str, str]:
    known = inputs.header if inputs and inputs.digest else {}
    return {**host_settings.values(base_image_of(plan)), **known}


def _recorded(plan: Plan, record: Path) -> Inputs | None:
    """Return what builds have recorded of a registry's base image; None for another base."""
    base = base_image_of(plan)
    return Inputs.recorded(base, record) if base.reference else None


def _located(plan: Plan, inputs: Inputs | None) -> str:
    """Return the address of the base image, with its digest if `inputs` has it."""
    located = base_image.redirected_reference(plan.site, oci_config.start(plan).name)
    return str(located.at(inputs.digest) if inputs and inputs.digest else located)


def _local(plan: Plan) -> str:
    """Return the id of the engine's image that the plan starts from; empty for other bases.

    Raises `PlanError` for a file, which a Dockerfile cannot name.
    """
    start = oci_config.start(plan)
    if not isinstance(start, oci_config.Local):
        return ""
    name = f"{start.kind}:{start.name}"
    if start.kind != image_name.DAEMON:
        fix = (
            f"skopeo copy {name} docker-daemon:NAME:TAG{_of_engine()}, and name"
            " docker-daemon:NAME:TAG; or build with 'sifwright build --engine docker'."
        )
        raise PlanError.of("a Dockerfile cannot start from a file", where=name, fix=fix)
    image_id = base_image.engine_image_id(start.name)
    if not image_id:
        fix = "See 'docker images' for what it has, and whether it runs."
        raise MachineError.of("no engine of this machine has such an image", where=name, fix=fix)
    return image_id


def _of_engine() -> str:
    """Return skopeo's option for the engine; skopeo 1.9 itself knows Docker's usual socket only."""
    with suppress(MachineError):
        if (address := base_image.engine_address()).startswith("unix://"):
            return f" --dest-daemon-host {shlex.quote(address)}"
    return ""


def _refuse_foreign(folder: Path) -> None:
    """Raise `UsageError` for anything but an earlier render."""
    if not os.path.lexists(folder):
        return
    is_folder = folder.is_dir() and not folder.is_symlink()
    if not is_folder or (any(folder.iterdir()) and not _is_ours(folder)):
        raise UsageError.of(
            "there is something else, which would be replaced",
            where=str(folder),
            fix="Name a folder that is not there yet, or one that 'sifwright render' wrote.",
        )


def _is_ours(folder: Path) -> bool:
    for recipe_file in (folder / "Dockerfile", *folder.glob("*.def")):
        with suppress(OSError), recipe_file.open(errors="replace", encoding="utf-8") as lines:
            if lines.readline().startswith(build_files.MARK):
                return True
    return False


def replace(folder: Path, contents: Iterable[LayerFile]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".recipe-", dir=folder.parent) as name:
        write_files(Path(name, "new"), contents, root="")
        files.publish_folder(Path(name, "new"), folder)
