"""Write the Dockerfile of a plan with its build context, or the Dockerfile alone."""

from __future__ import annotations

import errno
import os
import shlex
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.build.request import base_image
from sifwright.build.request.inputs import Inputs
from sifwright.catalog import image_name
from sifwright.errors import BuildError, MachineError, PlanError, UsageError
from sifwright.render import dockerfile, oci_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sifwright.catalog.model import LayerFile
    from sifwright.host.network.registry import Reference
    from sifwright.plan.model import Plan

__all__ = ["FOLDER", "WrittenFolder", "replace", "text", "write"]

# Below build/SITE/IMAGE.
FOLDER = "docker"
# Renders at the same time put their folders in place again until one stays.
_TRIES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenFolder:
    """The folder, and what was written into it."""

    folder: Path
    files: int
    bytes: int


def text(plan: Plan) -> str:
    """Return the Dockerfile as planned, without asking a registry."""
    return dockerfile.dockerfile(plan, _local(plan) or str(_located(plan)))


def write(plan: Plan, folder: Path, record: Path, note: Callable[[str], None]) -> WrittenFolder:
    """Write the folder again; it is whole, or as it was before.

    `record` is the folder of the image, which says what earlier builds started from; `note` is told
    if the registry cannot be asked. Raises `UsageError` for a folder that is somebody else's, and
    what `Inputs.of` does.
    """
    _refuse_foreign(folder)
    base = _local(plan) or str(_pinned(plan, record, note))
    files = list(dockerfile.context(plan, base))
    replace(folder, files)
    return WrittenFolder(
        folder=folder, files=len(files), bytes=sum(len(file.data) for file in files)
    )


def _located(plan: Plan) -> Reference:
    return base_image.redirected_reference(plan.site, oci_config.start(plan).name)


def _pinned(plan: Plan, record: Path, note: Callable[[str], None]) -> Reference:
    """Return the base image, with its digest if the plan names it."""
    if isinstance(oci_config.start(plan), oci_config.Registry):
        return _located(plan).at(Inputs.of(plan, record, note).digest)
    return _located(plan)


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
    image_id = base_image.digest_of_local(name)
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
    """Raise `UsageError` for a folder that no earlier render wrote."""
    if not os.path.lexists(folder):
        return
    mine = folder / "Dockerfile"
    if folder.is_symlink() or not folder.is_dir() or (any(folder.iterdir()) and not _is_ours(mine)):
        raise UsageError.of(
            "there is something else, which would be replaced",
            where=str(folder),
            fix="Name a folder that is not there yet, or one that 'sifwright render' wrote.",
        )


def _is_ours(file: Path) -> bool:
    try:
        return file.read_text(errors="replace").startswith(f"{dockerfile.MARK}\n")
    except OSError:
        return False


def replace(folder: Path, files: Iterable[LayerFile]) -> None:
    """Put a folder with these files where the other one stands; never a part of it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".docker-", dir=folder.parent) as name:
        new = Path(name, "new")
        _fill(new, files)
        # Of renders at once, each takes away what the others put there meanwhile.
        for old in map(str, range(_TRIES)):
            with suppress(FileNotFoundError):
                folder.rename(Path(name, old))
            with suppress(FileExistsError):
                return _put(new, folder)
    raise BuildError.of("other renders write it all the time", where=str(folder))


def _put(new: Path, folder: Path) -> None:
    try:
        new.rename(folder)
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise FileExistsError(*error.args) from None
        raise


def _fill(folder: Path, files: Iterable[LayerFile]) -> None:
    """Write the files with their modes in the image, whatever the umask."""
    for file in files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(0o755 if file.executable else 0o644)
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
