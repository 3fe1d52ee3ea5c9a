"""Write files of an image into a folder, and pack such a folder."""

from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path

from sifwright.catalog.model import LayerFile
from sifwright.errors import BuildError
from sifwright.make_image.pack_layers.pack import PackOptions, squash_command, with_fix
from sifwright.system import processes, user_namespace
from sifwright.system.tempdirs import TEMPORARY_FIX, name_folder_in_errors


def write_files(folder: Path, files: Iterable[LayerFile], root: str = "/") -> None:
    """Write files of the image into a folder that stands for its `root`."""
    for file in files:
        path = folder / Path(file.path).relative_to(root)
        _make_folder(path.parent)
        path.write_bytes(file.data)
        path.chmod(0o755 if file.executable else 0o644)


def _make_folder(path: Path) -> None:
    """Make missing folders with mode 0755 under any umask: layers copy folders with their modes."""
    if not path.is_dir():
        _make_folder(path.parent)
        path.mkdir()
        path.chmod(0o755)


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
    status = processes.stream(command, log=how.log, on_line=last.append, env=environment)
    if status != 0:
        raise BuildError(
            with_fix(processes.failure("mksquashfs of the metadata", status, last), how.fix)
        )
    return target
