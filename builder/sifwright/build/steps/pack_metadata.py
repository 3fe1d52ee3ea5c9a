"""Pack the files that the builder writes itself, such as the metadata of an image."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from sifwright.build.checks.host_checks import TEMPORARY_FIX
from sifwright.build.layers.pack import squash_command
from sifwright.build.steps.build_folder import write_files
from sifwright.errors import BuildError
from sifwright.system import processes, user_namespace
from sifwright.system.tempdirs import name_folder_in_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from sifwright.build.layers.pack import PackOptions
    from sifwright.catalog.model import LayerFile


def pack_files(
    files: Iterable[LayerFile], modes: Mapping[str, int], folder: Path, how: PackOptions
) -> Path:
    """Pack files in a new folder; return its squashfs. The same files give the same bytes.

    All files belong to root and have one time. `modes` has the modes of folders, by paths without
    a slash at either end; other folders have 0o755.
    """
    tree, target = folder / "tree", folder / "files.sqfs"
    with name_folder_in_errors(folder.parent, TEMPORARY_FIX):
        tree.mkdir(parents=True)
        write_files(tree, files)
    # The innermost first: a folder may be closed to its owner.
    for path in reversed([tree, *tree.rglob("*/")]):
        path.chmod(modes.get("/".join(path.relative_to(tree).parts), 0o755))
    command = squash_command(target, how.compression, source=tree)
    command += ["-all-root", "-all-time", "1", "-no-xattrs"]
    last: deque[str] = deque(maxlen=3)
    environment = user_namespace.environment()
    if processes.stream(command, log=how.log, on_line=last.append, env=environment) != 0:
        message = f"mksquashfs cannot pack the metadata of the image: {' '.join(last)}"
        raise BuildError.of(message, where=str(folder), fix=f"Free space. Whole log: {how.log}")
    return target
