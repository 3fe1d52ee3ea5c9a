"""The build's own folder, /.sifwright: made for a step, and what it leaves there for later ones.

It is no part of the image. What a layer writes to its `kept` (apt's sources) is stored with the
step's result, because a later build finds the result in the cache and still needs it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from sifwright.build.checks.host_checks import TEMPORARY_FIX
from sifwright.errors import BuildError
from sifwright.images.contents.image_tree import resolve_links
from sifwright.render import build_files
from sifwright.render.singularity_metadata import ENVIRONMENT, LABELS, BaseMetadata
from sifwright.system.tempdirs import name_folder_in_errors, remove

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sifwright.catalog.model import LayerFile
    from sifwright.plan.model import Plan

_KEPT = "kept"
# Folders that the image's metadata lies in: the last layer must not give them other modes.
_METADATA_FOLDERS = ("", ".singularity.d", ".singularity.d/env", "opt", "opt/sifwright")
# To go through a folder, which need not be one that we may list.
_ENTER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
_FIX = "The step, or the image it starts from, has to leave a plain one there."
_PLACES = {"tmp": "/tmp", "var-tmp": "/var/tmp"}  # noqa: S108  # of the image
_STEP_TMP = "step-tmp"
# Any user writes there, and removes only files of their own.
_MODE = 0o1777


def prepare(build: Path, plan: Plan, number: int, machine: Path, kept: Mapping[str, str]) -> None:
    """Make the folder for a step: its files, sifwright's programs, the machine's settings."""
    with name_folder_in_errors(build, TEMPORARY_FIX):
        _prepare(build, plan, number, machine, kept)


def _prepare(build: Path, plan: Plan, number: int, machine: Path, kept: Mapping[str, str]) -> None:
    settings(build, machine)
    for name, text in kept.items():
        (build / _KEPT / Path(name).name).write_bytes(text.encode(errors="surrogateescape"))
    step = plan.steps[number]
    write_files(build, [*build_files.programs(), *build_files.of_step(step)], build_files.BUILD)
    (build / "run").write_text(build_files.script(plan, number))
    (build / "shell").write_text(build_files.shell_script(plan, number))


def settings(build: Path, machine: Path) -> None:
    """Make the folder, with the machine's settings in it."""
    for name in ("tmp", _KEPT):
        (build / name).mkdir(parents=True)
    shutil.copytree(machine, build / "machine")
    # Programs of the image that give up root (apt's) read these, too.
    for path, mode in (
        (build, 0o755),
        (build / "machine", 0o755),
        (build / "machine/ca.crt", 0o644),
    ):
        if path.exists():
            path.chmod(mode)


def read(root: Path) -> dict[str, str]:
    """Return the step's files for later steps: name -> text; the build's folder is in `root`."""
    return _read_texts(root, f"{build_files.BUILD}/{_KEPT}")


def mirrors(header: Mapping[str, str]) -> dict[str, str]:
    """Return what of `machine.values` apt's sources in kept files name."""
    return {name: header.get(name, "") for name in ("debian-mirror", "debian-security-mirror")}


def moved(
    kept: Mapping[str, str], old: Mapping[str, str], new: Mapping[str, str]
) -> dict[str, str]:
    """Return kept files with this machine's mirrors in place of those that they were made with."""
    places = {old[name]: new[name] for name in old if old[name] and new.get(name)}
    if not places:
        return dict(kept)
    # One address may be the beginning of another.
    pattern = re.compile("|".join(map(re.escape, sorted(places, key=len, reverse=True))))
    return {name: pattern.sub(lambda match: places[match[0]], text) for name, text in kept.items()}


def modes(tree: Path) -> dict[str, int]:
    """Return the modes of the metadata's folders among a step's changes."""
    modes_by_name = {name: _read_mode(tree, name) for name in _METADATA_FOLDERS}
    return {name: mode for name, mode in modes_by_name.items() if mode is not None}


def base_metadata(tree: Path) -> BaseMetadata:
    """Return the metadata that the engine wrote into the tree of the first step."""
    return BaseMetadata(
        labels=json.loads(_read_text(tree, LABELS) or "{}"),
        environment=_read_text(tree, ENVIRONMENT) or "",
    )


def write_files(folder: Path, files: Iterable[LayerFile], root: str = "/") -> None:
    """Write files of the image into a folder that stands for its `root`."""
    for file in files:
        path = folder / Path(file.path).relative_to(root)
        _make_folder(path.parent)
        path.write_bytes(file.data)
        path.chmod(0o755 if file.executable else 0o644)


def _make_folder(path: Path) -> None:
    """Make what is not there yet; layers copy folders with their modes, whatever umask this is."""
    if not path.is_dir():
        _make_folder(path.parent)
        path.mkdir()
        path.chmod(0o755)


# No link is followed: it would lead to a file of this machine, whose text would get into the cache,
# to later steps and into the image. Paths are those in the image.
def _read_text(root: Path, path: str) -> str | None:
    """Return the text of a file; None if it is missing. Raises `BuildError` for other kinds."""
    parent, name = os.path.split(path)
    with _translate_errors(path):
        try:
            with _folder(root, parent) as near:
                return _read(near, name).decode()
        except FileNotFoundError:
            return None


def _read_texts(root: Path, path: str) -> dict[str, str]:
    """Return the texts of the plain files in a folder, by name.

    Any bytes become text that JSON can hold, and the same bytes again (PEP 383).
    """
    with _translate_errors(path):
        try:
            with _folder(root, path) as folder:
                names = [name for name in _names(folder) if _is_plain(folder, name)]
                return {
                    name: _read(folder, name).decode(errors="surrogateescape") for name in names
                }
        except FileNotFoundError:
            return {}


def _read_mode(root: Path, path: str) -> int | None:
    """Return the mode of a folder; None if there is none at this path."""
    with _translate_errors(path):
        try:
            with _folder(root, path) as folder:
                return stat.S_IMODE(os.fstat(folder).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None


@contextmanager
def _folder(root: Path, path: str) -> Iterator[int]:
    """Yield the descriptor of a folder; raises `NotADirectoryError` for a link on the way."""
    folder = os.open(root, _ENTER)
    try:
        for name in PurePosixPath(path.lstrip("/")).parts:
            above, folder = folder, os.open(name, _ENTER, dir_fd=folder)
            os.close(above)
        yield folder
    finally:
        os.close(folder)


def _names(folder: int) -> list[str]:
    near = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    try:
        return sorted(os.listdir(near))  # noqa: PTH208  # a descriptor
    finally:
        os.close(near)


def _is_plain(folder: int, name: str) -> bool:
    return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _read(folder: int, name: str) -> bytes:
    # Asked first: a pipe lets whoever opens it wait, and a device may do more.
    if not _is_plain(folder, name):
        raise OSError("is no plain file")
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder), "rb") as file:  # noqa: PTH123  # a descriptor
        return file.read()


@contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    try:
        yield
    except NotADirectoryError:
        raise _problem(path, "lies behind a link, or what is no folder") from None
    except UnicodeDecodeError:
        raise _problem(path, "is no text in UTF-8") from None
    except OSError as error:
        raise _problem(path, f"cannot be read: {error.strerror or error}") from None


def _problem(path: str, message: str) -> BuildError:
    return BuildError.of(message, where=f"/{path.lstrip('/')} in the image", fix=_FIX)


# The engine shows the machine's own /tmp and /var/tmp, in which others work. Many recipes end with
# `rm -rf /tmp/*`, so a step gets empty folders of its own.
def make_step_tmp(work_dir: Path, tree: Path | None = None) -> list[str]:
    """Make them in a folder for a step, and return what the engine is to bind.

    In a `tree` only for those that are there: nothing is made in it to bind to.
    """
    return [
        f"{_make_open_folder(work_dir / _STEP_TMP / name)}:{target}"
        for name, target in _PLACES.items()
        if tree is None or _is_folder(tree, target)
    ]


def _is_folder(tree: Path, folder: str) -> bool:
    """Return whether the image has a folder there; links are followed inside the image."""

    def link(path: str) -> str | None:
        here = tree / path
        return str(here.readlink()) if here.is_symlink() else None

    path = resolve_links(folder, link)
    return bool(path) and (tree / path).is_dir()


def clear_step_tmp(work_dir: Path) -> None:
    """Remove them: what a step leaves there takes room, and its files may be anybody's."""
    remove(work_dir / _STEP_TMP)


def _make_open_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    # Not of mkdir, whose mode the umask takes from.
    folder.chmod(_MODE)
    return folder
