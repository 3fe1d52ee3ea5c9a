"""The build's own folder, /.sifwright: made for a step, and what it leaves there for later ones.

It is no part of the image. The files that a layer writes to its `kept` (apt's sources) are stored
with the step's result. A later build finds the result in the cache and still needs the files.
"""

import errno
import json
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from sifwright.errors import BuildError
from sifwright.images.contents.image_tree import resolve_links
from sifwright.make_image.pack_layers.pack_files import write_files
from sifwright.make_image.resolve_request.host_settings import Settings
from sifwright.plan.model import Plan
from sifwright.render import build_files
from sifwright.render.singularity_metadata import ENVIRONMENT, HEADER, LABELS, BaseMetadata
from sifwright.system.files import write_private
from sifwright.system.tempdirs import TEMPORARY_FIX, name_folder_in_errors, remove

# Paths that no step packs. The two files name the day, the mirror and a folder of the machine. The
# metadata of the finished image has files of its own (render/singularity_metadata.py).
LEFT_OUT = (build_files.BUILD, LABELS, HEADER)
_KEPT = "kept"
# Folders that the image's metadata lies in: the last layer must not give them other modes.
_METADATA_FOLDERS = ("", ".singularity.d", ".singularity.d/env", "opt", "opt/sifwright")
_FIX = "The step, or the image it starts from, has to leave a plain one there."
_PLACES = {"tmp": "/tmp", "var-tmp": "/var/tmp"}  # noqa: S108  # of the image
_STEP_TMP = "step-tmp"
# Any user writes there, and removes only files of their own.
_MODE = 0o1777


def prepare(
    build: Path, plan: Plan, number: int, settings: Settings, kept: Mapping[str, str]
) -> None:
    """Make the folder for a step: its files, sifwright's programs, the machine's settings."""
    step = plan.steps[number]
    with name_folder_in_errors(build, TEMPORARY_FIX):
        copy_settings(build, settings.machine)
        for name in step.layer.secrets:
            _write_secret(build / "secrets" / name, settings.secrets[name])
        for name, text in kept.items():
            (build / _KEPT / Path(name).name).write_bytes(text.encode(errors="surrogateescape"))
        write_files(build, [*build_files.programs(), *build_files.of_step(step)], build_files.BUILD)
        (build / "run").write_text(build_files.script(plan, number), encoding="utf-8")
        (build / "shell").write_text(build_files.shell_script(plan, number), encoding="utf-8")


def _write_secret(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_private(path, data).chmod(0o400)


def copy_settings(build: Path, machine: Path) -> None:
    """Make the folder, with the machine's settings in it."""
    for name in ("tmp", _KEPT):
        (build / name).mkdir(parents=True)
    shutil.copytree(machine, build / "machine")
    # Programs of the image that give up root (apt's) read these, too.
    build.chmod(0o755)
    (build / "machine").chmod(0o755)
    if (bundle := build / "machine/ca.crt").exists():
        bundle.chmod(0o644)


def read(root: Path) -> dict[str, str]:
    """Return the step's files for later steps: name -> text; the build's folder is in `root`."""
    path = f"{build_files.BUILD}/{_KEPT}"
    with _translate_errors(path):
        try:
            files = sorted(_path_in_tree(root, f"{path}/").iterdir())
            plain = (file for file in files if stat.S_ISREG(file.lstat().st_mode))
            # Any bytes become text that JSON can hold, and the same bytes again (PEP 383).
            return {file.name: file.read_bytes().decode(errors="surrogateescape") for file in plain}
        except FileNotFoundError:
            return {}


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
    modes: dict[str, int] = {}
    for name in _METADATA_FOLDERS:
        with _translate_errors(name), suppress(FileNotFoundError, NotADirectoryError):
            modes[name] = stat.S_IMODE(_path_in_tree(tree, f"{name}/").stat().st_mode)
    return modes


def base_metadata(tree: Path) -> BaseMetadata:
    """Return the metadata that the engine wrote into the tree of the first step."""
    return BaseMetadata(
        labels=json.loads(_read_text(tree, LABELS) or "{}"),
        environment=_read_text(tree, ENVIRONMENT) or "",
    )


# No link is followed: it would lead to a file of this machine. The text of this file would get into
# the cache, to later steps and into the image. Paths are paths of the image.
def _read_text(root: Path, path: str) -> str | None:
    """Return the text of a file; None if it is missing. Raises `BuildError` for other kinds."""
    with _translate_errors(path):
        try:
            file = _path_in_tree(root, path)
            # Look before opening: opening a pipe waits, and a device may do more.
            if not stat.S_ISREG(file.lstat().st_mode):
                raise OSError("is no plain file")
            return file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None


def _path_in_tree(root: Path, path: str) -> Path:
    """Return a path in a tree; raises `NotADirectoryError` for a link or a file on the way."""
    file, (*parents, name) = root, path.lstrip("/").split("/")
    for parent in parents:
        file /= parent
        if not stat.S_ISDIR(file.lstat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "is no folder", str(file))
    return file / name


@contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    where = f"/{path.lstrip('/')} in the image"
    try:
        yield
    except NotADirectoryError:
        message = "lies behind a link, or what is no folder"
        raise BuildError.of(message, where=where, fix=_FIX) from None
    except UnicodeDecodeError:
        raise BuildError.of("is no text in UTF-8", where=where, fix=_FIX) from None
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise BuildError.of(message, where=where, fix=_FIX) from None


# The engine shows the machine's own /tmp and /var/tmp, in which others work. Many recipes end with
# `rm -rf /tmp/*`, so a step gets empty folders of its own.
def make_step_tmp(work_dir: Path, tree: Path | None = None) -> list[str]:
    """Make them in a folder for a step, and return what the engine is to bind.

    In a `tree` only for those that are there: nothing is made in it to bind to.
    """
    binds = []
    for name, target in _PLACES.items():
        if tree is None or _is_folder(tree, target):
            folder = work_dir / _STEP_TMP / name
            folder.mkdir(parents=True)
            # Not of mkdir: the umask takes from its mode.
            folder.chmod(_MODE)
            binds.append(f"{folder}:{target}")
    return binds


def _is_folder(tree: Path, folder: str) -> bool:
    """Return whether the image has a folder there; links are followed inside the image."""

    def link(path: str) -> str | None:
        here = tree / path
        return str(here.readlink()) if here.is_symlink() else None

    path = resolve_links(folder, link)
    return bool(path) and (tree / path).is_dir()


def clear_step_tmp(work_dir: Path) -> None:
    """Remove them: the files of a step there take room, and may belong to any user."""
    remove(work_dir / _STEP_TMP)
