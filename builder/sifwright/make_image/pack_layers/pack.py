"""Pack what a step changed into a squashfs, with a listing of it, by in_namespace.py."""

import json
import os
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sifwright.errors import BuildError, MachineError, Problem
from sifwright.host.engines.apptainer import QUEUE_MEMORY, ZSTD_LEVEL
from sifwright.make_image.pack_layers.in_namespace import PackRequest
from sifwright.system import processes, user_namespace
from sifwright.system.user_namespace import NOWHERE

SQUASHFS = "layer.sqfs"
# To be raised when the same changes are packed into other bytes: cached results count no more.
FORMAT = "5"
LISTING = "files.json.gz"
# The space of a file beside its bytes: the rest of a block, and its inode.
BYTES_PER_FILE = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class PackOptions:
    """Options of packing: the site's compression, and the log that programs write to.

    `fix` ends every error, and names the log that stays. `owners` has the owners of the files
    with one id (see `user_namespace.around`). With an `epoch`, in seconds since 1970, what is
    packed is the same on every day: see fixed_bytes.py.
    """

    compression: str
    log: Path
    fix: str = ""
    owners: Path = NOWHERE
    epoch: int | None = None

    def times(self, below: int) -> list[int]:
        """Return the times of so many layers and of the one above them."""
        return [] if self.epoch is None else [self.epoch + number for number in range(below + 1)]


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedLayer:
    """A layer: `entries` counts its paths, whiteouts included; `bytes` is the size of its files.

    `doubts` names a path that an overlay may have got wrong, if any; see normalise_upper.py.
    """

    squashfs: Path
    listing: Path
    entries: int
    bytes: int
    capabilities: bool
    doubts: str

    @property
    def unpacked(self) -> int:
        return self.bytes + self.entries * BYTES_PER_FILE


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkTree:
    """A tree that goes on being worked in after what changed in it was packed.

    `state` is a file that says what the tree was when it was last packed, if it was. `upper` is an
    empty folder on the same file system, which gets what changed.
    """

    tree: Path
    state: Path
    upper: Path


def pack(
    changes: Path | WorkTree,
    into: Path,
    how: PackOptions,
    *,
    lower: Sequence[Path] = (),
    exclude: Sequence[str] = (),
) -> PackedLayer:
    """Pack an overlay's upper directory, or with no `lower` a whole tree, or what changed in one.

    The directory is used up: it is changed in place. `into` is a private folder. `lower` are the
    listings of the layers below, the lowest first; `exclude` are paths of the image that stay out.
    The same tree gives the same bytes for every user, machine, folder and number of processors.

    Raises `MachineError` without a user namespace that shows the owners (see
    `user_namespace.problem`). Raises `BuildError` if the tree cannot be packed or the disk is full.
    """
    live = changes if isinstance(changes, WorkTree) else None
    upper = changes.upper if isinstance(changes, WorkTree) else changes
    request = PackRequest(
        tree=str(upper.absolute()),
        listing=str((into / LISTING).absolute()),
        lower=[str(path.absolute()) for path in lower],
        exclude=[path.strip("/") for path in exclude],
        live=str(live.tree.absolute()) if live else "",
        state=str(live.state.absolute()) if live else "",
        squash=squash_command(into / SQUASHFS, how.compression),
        times=how.times(len(lower)),
    )
    return packed(into, perform(request, into, how))


def packed(into: Path, answer: Mapping[str, Any]) -> PackedLayer:
    return PackedLayer(squashfs=into / SQUASHFS, listing=into / LISTING, **answer)


def squash_command(target: Path, compression: str, source: Path = Path()) -> list[str]:
    """Pack a directory on all processors; nothing of the machine or the clock is in it.

    Without -exit-on-error, mksquashfs packs a file that it cannot read as an empty one (tried).
    """
    command = ["mksquashfs", str(source), str(target.absolute()), "-comp", compression]
    if compression == "zstd":
        command += ["-Xcompression-level", str(ZSTD_LEVEL)]
    command += ["-processors", str(len(os.sched_getaffinity(0))), "-mem", QUEUE_MEMORY]
    command += ["-mkfs-time", "0", "-noappend", "-exit-on-error"]
    return [*command, "-quiet", "-no-progress"]


def perform(request: PackRequest, into: Path, how: PackOptions) -> dict[str, Any]:
    """Have it done where the owners are those of the image; returns what came of it."""
    if problem := user_namespace.problem():
        raise MachineError(problem)
    file = into / "request.json"
    file.write_text(json.dumps(asdict(request)), encoding="utf-8")
    last: deque[str] = deque(maxlen=3)
    module = "sifwright.make_image.pack_layers.in_namespace"
    program = [sys.executable, "-P", "-m", module, str(file.absolute())]
    # The owners of what is unpacked here are of use to what unpacked it.
    tree = Path(request.tree) if request.layers else None
    command = [*user_namespace.prefix(how.owners, tree), *program]
    processes.stream(command, log=how.log, on_line=last.append, env=user_namespace.environment())
    file.unlink()
    # The answer is the last line.
    try:
        answer = json.loads(last[-1])
        problems = answer.pop("problems", ())
    except (LookupError, ValueError, AttributeError):
        raise BuildError.of(f"packing a layer broke off: {' '.join(last)}", fix=how.fix) from None
    if problems:
        # The program's own message rarely names more than a full disk or an unreadable file.
        raise BuildError(*(with_fix(Problem(**problem), how.fix) for problem in problems))
    return dict(answer)


def with_fix(problem: Problem, log: str) -> Problem:
    """Return the problem with what to do, and with the log that stays."""
    fix = f"{problem.fix or 'Free space, or mend what is named.'} {log}".rstrip()
    return replace(problem, fix=fix)
