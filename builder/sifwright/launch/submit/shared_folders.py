"""Find out on a node whether it sees the folders of the machine that submitted."""

import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import sifwright
from sifwright.system import cache_folder, files

_IDENTITY = "folder-id"


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedFolder:
    """A folder that nodes have to see; `file` in it has the `digest` if it is the same one."""

    name: str
    path: Path
    file: Path
    digest: str
    fix: str


def project(folder: Path, site: str) -> SharedFolder:
    """Return the project; a node that has another one reads another file of the site."""
    file = folder / "defs" / "sites" / f"{site}.yaml"
    return SharedFolder(
        name="project",
        path=folder,
        file=file,
        digest=files.sha256(file),
        fix="Name a folder that all nodes see: --project DIR. Do not change it while jobs wait.",
    )


def program() -> SharedFolder:
    """Return the folder of sifwright itself."""
    file = Path(sifwright.__file__)
    return SharedFolder(
        name="sifwright",
        path=file.parent,
        file=file,
        digest=files.sha256(file),
        fix="Install sifwright in a folder that all nodes see.",
    )


def step_cache() -> SharedFolder:
    """Return the step cache, made if it is not there.

    Raises `MachineError` if it cannot be written: no job could keep what it makes.
    """
    root = cache_folder.make(cache_folder.root())
    with cache_folder.translate_errors(root):
        file = root / _IDENTITY
        # It is written once, and no other folder has it.
        with suppress(FileExistsError), file.open("x", encoding="ascii") as new:
            new.write(secrets.token_hex())
        return SharedFolder(
            name="step cache",
            path=root.parent,
            file=file,
            digest=files.sha256(file),
            fix="Choose a folder that all nodes see: SIFWRIGHT_CACHE=DIR.",
        )
