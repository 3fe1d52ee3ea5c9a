"""The part of packing that runs as root of a user namespace.

pack.py starts it and reads its answer:

    python -m sifwright.make_image.pack_layers.in_namespace REQUEST

REQUEST is the JSON of a `PackRequest`. The last line on standard output is JSON, too:
`LayerSummary.answer`, or the `problems` (and exit status 1).
"""

import json
import os
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from sifwright.errors import BuildError, Problem, quoted
from sifwright.make_image.pack_layers import fixed_bytes
from sifwright.make_image.pack_layers.apply_layer import apply, remove
from sifwright.make_image.pack_layers.changes import collected, note_state
from sifwright.make_image.pack_layers.layer_summary import LayerSummary
from sifwright.make_image.pack_layers.lower_tree import LowerTree
from sifwright.make_image.pack_layers.normalise_upper import tidy
from sifwright.system import small_file
from sifwright.system.processes import run_or_fail

# A path may have 2048 folders (PATH_MAX of limits.h), each is a call.
_DEPTH = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class PackRequest:
    """The request of pack.py; all paths are absolute.

    `tree` is the folder to pack. A request fills it in one of three ways:

    * by nothing else: `tree` is an overlay's upper directory or a whole tree;
    * by `live`: a tree to compare with the file `state`; `tree` receives the changes;
    * by `layers`: squashfs files, the lowest first, to unpack into `tree`. The file `state`, if
      named, is then written from `tree`.

    `lower` are the listings of the layers below. `exclude` are paths of the image that stay out.
    `unsquash` is the command that unpacks a layer, without its last words: the folder and the file.
    `squash` is the command that packs the current directory; it is empty for a tree that stays
    unpacked. `times` are the times of the layers up to this one, for new files (fixed_bytes.py).
    If it is empty, files keep their times.
    """

    tree: str
    listing: str
    live: str = ""
    state: str = ""
    lower: Sequence[str] = ()
    exclude: Sequence[str] = ()
    layers: Sequence[str] = ()
    unsquash: Sequence[str] = ()
    squash: Sequence[str] = ()
    times: Sequence[int] = ()


def main(request: Path) -> int:
    sys.setrecursionlimit(_DEPTH)
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        answer = _do(PackRequest(**small_file.read_json(request)))
    except BuildError as error:
        answer = {"problems": [asdict(problem) for problem in error.problems]}
    except OSError as error:
        where = quoted(error.filename) if error.filename else ""
        answer = {"problems": [asdict(Problem(what=str(error.strerror), where=where))]}
    print(json.dumps(answer))  # noqa: T201  # the answer
    return int("problems" in answer)


def _do(request: PackRequest) -> dict[str, object]:
    tree = Path(request.tree)
    # Relative names below: a path of the image may be as long as the system allows.
    os.chdir(tree.parent)
    for layer in request.layers:
        _add(request, tree.name, layer)
    time = request.times[-1] if request.times else None
    if request.times:
        # New files get the time of this layer.
        os.chdir(request.live or request.tree)
        fixed_bytes.fix(request.times)
    os.chdir(tree)
    lower = LowerTree(*map(Path, request.lower))
    exclude = [os.fsencode(path) for path in request.exclude]
    # The current directory is filled with the changes of a live tree; some folders are moved.
    changes: AbstractContextManager[Collection[bytes]] = nullcontext(())
    if request.live:
        changes = collected(Path(request.live), Path(request.state), lower, exclude)
    with changes as moved:
        summary = tidy(lower, exclude, is_linked=bool(request.live), moved=moved, time=time)
        summary.write(Path(request.listing))
        if request.squash:
            with _pseudo_files(summary, Path(request.listing)) as words:
                run_or_fail([*request.squash, *words])
    if request.state and not request.live:
        note_state(tree, Path(request.state))
    return summary.as_json()


def _add(request: PackRequest, tree: str, layer: str) -> None:
    if not Path(tree).exists():
        run_or_fail([*request.unsquash, tree, layer])
        return
    stage = f"{tree}.layer"
    run_or_fail([*request.unsquash, stage, layer])
    apply(os.fsencode(stage), os.fsencode(tree))
    remove(os.fsencode(stage))


@contextmanager
def _pseudo_files(summary: LayerSummary, near: Path) -> Iterator[list[str]]:
    """Let mksquashfs itself make the whiteouts that this kernel lets nobody make."""
    names = (re.sub(rb"[^A-Za-z0-9/._\x80-\xff-]", rb"\\\g<0>", path) for path in summary.unmade)
    # Definitions of character devices 0:0 of root, of the year 1970.
    lines = [name + b" C 0 0 0 0 0 0" for name in sorted(names)]
    if not lines:
        yield []
        return
    file = near.with_suffix(".pseudo")
    # In the file a definition is a line, as a word it may have line breaks.
    file.write_bytes(b"".join(line + b"\n" for line in lines if b"\n" not in line))
    words = [os.fsdecode(line) for line in lines if b"\n" in line]
    yield ["-pf", str(file), *(word for line in words for word in ("-p", line))]
    file.unlink()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
