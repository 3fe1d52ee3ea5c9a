"""Check that the programs of an image are for its site's processor."""

import os
import struct
from pathlib import Path

from sifwright.errors import BuildError, Problem, quoted
from sifwright.host.emulation.binfmt import MACHINES
from sifwright.images.contents.layer_stack import LayerStack

# Up to e_machine, for both byte orders (elf(5)).
_HEAD = struct.Struct("<4s14xH")
# More lines would hide the first.
_SHOWN = 5


def refuse_other_processor(sif: Path, processor: str) -> None:
    """Raise `BuildError` with the programs and libraries that are for the other processor.

    Files for GPUs and the kernel's BPF are ELF files, too; they are for neither.
    """
    stack = LayerStack.of(sif)
    others = {code: name for name, code in MACHINES.items() if name != processor}
    foreign = {
        path: others[code]
        for path, head in stack.heads(_HEAD.size).items()
        if (code := _machine(head)) in others
    }
    names = {path: stack.names[stack.tree[path].layer] for path in foreign}
    problems = [
        Problem(
            where=f"layer '{names[path]}': {quoted('/' + os.fsdecode(path))}",
            what=f"is for {name} processors, the site has {processor}",
            fix="Mend the layer: it takes a file of another processor.",
        )
        for path, name in sorted(foreign.items())
    ]
    if left := problems[_SHOWN:]:
        problems = [*problems[:_SHOWN], Problem(what=f"{len(left)} more such files")]
    if problems:
        raise BuildError(*problems)


def _machine(head: bytes) -> int:
    """Return e_machine of an ELF file; 0 for any other file."""
    if len(head) < _HEAD.size:
        return 0
    magic, machine = _HEAD.unpack(head)
    return machine if magic == b"\x7fELF" else 0
