"""Put an imported image below defs/: all of it or nothing, and never over something else."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from sifwright.catalog.load_catalog import load_catalog
from sifwright.catalog.model import LayerFile
from sifwright.errors import UsageError
from sifwright.system import files


def refuse_taken(defs: Path, new_files: Mapping[str, LayerFile]) -> None:
    """Raise `UsageError` if something is there already."""
    taken = [name for name in _tops(new_files) if os.path.lexists(defs / name)]
    if taken:
        fix = "Choose another --name, or remove what an earlier import has written."
        raise UsageError.of("is there already", where=str(defs / taken[0]), fix=fix)


def place(defs: Path, new_files: Mapping[str, LayerFile]) -> None:
    """Write it all beside, see that it loads, and move it into place, the image last."""
    refuse_taken(defs, new_files)
    with tempfile.TemporaryDirectory(prefix=".sifwright-", dir=defs) as name:
        new = Path(name) / "defs"
        _write(new, new_files)
        _check(defs, new)
        with _all_or_none() as moved:
            for top in _tops(new_files):
                if os.path.lexists(defs / top):
                    raise FileExistsError(f"{defs / top} has come in between")
                (new / top).rename(defs / top)
                moved.append(defs / top)
    for folder in ("layers", "images"):
        files.sync_folder(defs / folder)


def _tops(new_files: Mapping[str, LayerFile]) -> list[str]:
    """Return the paths to move: the folders of layers, and the file of the image."""
    names = {"/".join(path.split("/")[:2]) for path in new_files}
    return sorted(names, key=lambda name: (name.startswith("images/"), name))


def _write(folder: Path, new_files: Mapping[str, LayerFile]) -> None:
    for name, file in new_files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(0o755 if file.executable else 0o644)


def _check(defs: Path, new: Path) -> None:
    """Load the new definitions alone; raises what `load_catalog` says of them.

    They refer to nothing of the others but versions.yaml, and their names are free.
    """
    shutil.copy(defs / "versions.yaml", new)
    load_catalog(new, defs.parent)


@contextlib.contextmanager
def _all_or_none() -> Iterator[list[Path]]:
    moved: list[Path] = []
    try:
        yield moved
    except BaseException:
        for path in moved:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
        raise
