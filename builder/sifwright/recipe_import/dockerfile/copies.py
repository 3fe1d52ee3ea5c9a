"""COPY, ADD and %files: files of a layer, downloads, and lines of its install.sh."""

import re
import shlex
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sifwright.catalog.model import LayerFile
from sifwright.catalog.script_rules import MAX_TEXT
from sifwright.errors import quoted
from sifwright.recipe_import.context import Context, ContextError, CopiedPath
from sifwright.recipe_import.dockerfile import archives
from sifwright.recipe_import.dockerfile.instructions import Instruction
from sifwright.recipe_import.draft import DraftDownload
from sifwright.recipe_import.shell_words import WordError

# Folders that a step sees of the building machine, or that are gone after it.
MACHINE_PLACES = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # looked for, not written to
# Apptainer's umask in a build (tried).
_UMASK = 0o002
_SET_ID = stat.S_ISUID | stat.S_ISGID


@dataclass(kw_only=True, slots=True)
class StagedFiles:
    """The copies of one instruction: files of the layer, and lines of its install.sh."""

    files: list[LayerFile]
    code: list[str]


def own_places(target: str) -> bool:
    """Return whether a target is in a folder that a step sees of the building machine."""
    return any(f"{target}/".startswith(f"{folder}/") for folder in MACHINE_PLACES)


def is_kept(target: str) -> bool:
    """Return whether a target is in a folder of the build or of the engine."""
    return f"{target}/".startswith(("/.sifwright/", "/.singularity.d/"))


def copied(
    context: Context, sources: Sequence[Path], target: str, layer_folder: str, mode: int
) -> StagedFiles:
    """Stage the files of COPY: a folder as its content; `mode` 0 keeps the modes.

    `layer_folder` is the folder of the layer that holds this and nothing else.
    """
    taken = [(path, list(context.entries(path))) for path in sources]
    is_file = len(taken) == 1 and not taken[0][1][0].is_folder
    if is_file and not target.endswith("/"):
        return _one_file(taken[0][0].name, taken[0][1][0], target, layer_folder, mode)
    if len(taken) > 1 and not target.endswith("/"):
        raise ContextError(f"several files to '{target}'", "End the target with '/'.")
    entries = {entry.path: entry for item in taken for entry in _named(*item)}
    code = borrowed(target, sorted({path.split("/")[0] for path in entries}))
    files = [_file(f"{layer_folder}/{p}", e) for p, e in entries.items() if _is_file(e)]
    code += _lines(list(entries.values()), target.rstrip("/") or "/", layer_folder, mode)
    return StagedFiles(files=files, code=code)


def document(item: Instruction, target: str) -> StagedFiles:
    """Stage the here-document of COPY, which is a file of its name."""
    file = item.documents[0]
    entry = CopiedPath(path="", mode=stat.S_IFREG | 0o644, data=file.plain.encode())
    target += file.name if target.endswith("/") else ""
    mode = int(dict(item.flags).get("chmod") or "0", 8)
    return _one_file(file.name, entry, target, f"copy-{item.line}", mode)


def _named(path: Path, entries: list[CopiedPath]) -> list[CopiedPath]:
    """Keep the name of a file in a folder; of a folder, only the content is copied."""
    if entries[0].is_folder:
        return entries[1:]
    first = entries[0]
    return [CopiedPath(path=path.name, mode=first.mode, data=first.data)]


def _one_file(name: str, entry: CopiedPath, target: str, folder: str, mode: int) -> StagedFiles:
    path_in_layer = f"{folder}/{name}"
    code = borrowed(target, [name])
    code.append(f"copy_file {shlex.quote(path_in_layer)} {shlex.quote(target)}")
    bits = mode or _copied_mode(entry)
    if bits != _carried_mode(entry):
        code.append(f'chmod {bits:o} -- "$copied"')
    return StagedFiles(files=[_file(path_in_layer, entry)], code=code)


def _lines(listed: Sequence[CopiedPath], top: str, layer_folder: str, mode: int) -> Iterator[str]:
    """Yield folders first, so that empty ones exist, then the copy, then links and modes."""
    yield f"folder {shlex.quote(top)}"
    for entry in listed:
        if entry.is_folder:
            line = layer_folder.split("-")[1]
            yield f"copied_folder {shlex.quote(_join(top, entry.path))} {line}"
    if any(map(_is_file, listed)):
        yield f"copy_into {layer_folder} {shlex.quote(top)}"
    for entry in listed:
        if entry.link:
            yield f"link {shlex.quote(entry.link)} {shlex.quote(_join(top, entry.path))}"
    for entry in reversed(listed):
        bits = mode or _copied_mode(entry)
        if not entry.link and bits != _carried_mode(entry):
            yield f"chmod {bits:o} -- {shlex.quote(_join(top, entry.path))}"


def staged_files(context: Context, sources: Sequence[Path], line: int) -> StagedFiles:
    """Stage the files of %files as cp -L copies them: a folder with its name."""
    files, folders, modes = [], [], []
    for path in sources:
        if not path.name:
            raise ContextError("all of the recipe's folder", "Name what is in it.")
        for entry in context.entries(path):
            path_in_layer = f"copy-{line}/{path.name}" + (f"/{entry.path}" if entry.path else "")
            shown = f'"$layer"/{shlex.quote(path_in_layer)}'
            if _is_file(entry):
                files.append(_file(path_in_layer, entry))
            else:
                folders.append(f"folder {shown}")
            if (bits := stat.S_IMODE(entry.mode) & ~_UMASK) != _carried_mode(entry):
                modes.append(f"chmod {bits:o} -- {shown}")
    return StagedFiles(files=files, code=[*folders, *modes])


def archive(entry: CopiedPath, folder: str, target: str) -> StagedFiles | None:
    """Stage the archive of ADD without compression; None for other files."""
    if (data := archives.unpacked(entry.data)) is None:
        return None
    path_in_layer = f"{folder}/archive.tar"
    file = LayerFile(path=path_in_layer, data=data)
    return StagedFiles(files=[file], code=[f"unpack {path_in_layer} {shlex.quote(target)}"])


def borrowed(target: str, names: Sequence[str]) -> list[str]:
    """Return the line that reports files in a folder of the machine; none for other folders."""
    if not own_places(target):
        return []
    top = target.rstrip("/")
    paths = [f"{top}/{name}" for name in names] if top in MACHINE_PLACES else [top]
    return ["borrow " + " ".join(map(shlex.quote, paths))]


def _join(top: str, path: str) -> str:
    return f"{top.rstrip('/')}/{path}" if path else top


def _is_file(entry: CopiedPath) -> bool:
    return stat.S_ISREG(entry.mode)


def _copied_mode(entry: CopiedPath) -> int:
    """Return the mode that COPY gives: without setuid and setgid (Docker 20.10, buildah)."""
    return stat.S_IMODE(entry.mode) & (0o7777 if entry.is_folder else ~_SET_ID)


def _carried_mode(entry: CopiedPath) -> int:
    """Return the mode of a layer's file, as git keeps it."""
    return 0o755 if entry.is_folder or entry.mode & 0o111 else 0o644


def _file(path_in_layer: str, entry: CopiedPath) -> LayerFile:
    executable = bool(entry.mode & 0o111)
    return LayerFile(path=path_in_layer, data=entry.data, executable=executable)


GONE = "is gone when its layer ends: /tmp is no part of an image here"


def whole_path(path: str, folder: str) -> str:
    """Return the whole path of a target; WORKDIR is '' if it is not known."""
    if not path.startswith("/") and not folder:
        raise WordError(f"'{path}' starts in the base image's WORKDIR, which is not known")
    joined = path if path.startswith("/") else f"{folder.rstrip('/')}/{path}"
    if ".." in joined.split("/") or not joined.isprintable():
        raise WordError(f"{joined!a}: '..' and what cannot be printed are not for targets")
    if len(joined) > MAX_TEXT:
        raise WordError(f"{quoted(joined)} is longer than {MAX_TEXT} characters")
    ends = joined.endswith(("/", "/."))
    parts = [part for part in joined.split("/") if part not in {"", "."}]
    whole = "/" + "/".join(parts)
    if is_kept(whole):
        raise WordError(f"'{whole}' is in a folder of the build's or the engine's own")
    return f"{whole}/" if ends and parts else whole


def lost_folders(target: str) -> frozenset[str]:
    """Return the temporary folder that a target is in; no step keeps it."""
    return frozenset({"tmp"} if own_places(target) else ())


_URL = re.compile(r"https?://[^\s@'\"{}]+/([A-Za-z0-9][A-Za-z0-9._+-]*)")
_UNPACKED = re.compile(r"\.(tar(\.[a-z0-9]+)?|tgz|tbz2?|txz)$")
_FIX = "Use RUN with curl, and compare the sum of what it got."


def is_address(source: str) -> bool:
    return re.match(r"[a-z]+://|git@", source) is not None


def download(
    item: Instruction, number: int, url: str, target: str
) -> tuple[DraftDownload, tuple[str, ...]]:
    """Return the source, and the lines of install.sh that put the file in place."""
    match = _URL.fullmatch(url)
    if match is None or match[1].endswith(".git"):
        raise ContextError(f"'{url}' is not the address of a file", _FIX)
    if _UNPACKED.search(match[1]):
        # ADD leaves it packed, fetch-source does not.
        raise ContextError(f"'{url}' is an archive, which ADD leaves packed", _FIX)
    sums = [value for name, value in item.flags if name == "checksum"]
    if sums and not re.fullmatch(r"sha256:[0-9a-f]{64}", sums[0]):
        raise ContextError(f"--checksum={sums[0]}", "Give a sha256 of 64 digits.")
    name = f"add-{item.line}-{number}"
    sha256 = sums[0].removeprefix("sha256:") if sums else ""
    code = [f"download {name} {shlex.quote(match[1])} {shlex.quote(target)}"]
    if mode := dict(item.flags).get("chmod"):
        code.append(f'chmod {mode} -- "$copied"')
    return DraftDownload(name=name, url=url, sha256=sha256, line=item.line), tuple(code)
