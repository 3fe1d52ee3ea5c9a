"""Toy images of any size and any number of layers, to see how builds grow."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

from typing import TYPE_CHECKING

from project import Project

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from figures import Settings

__all__ = ["GB", "LAST_LAYER", "Synthetic", "tree_script"]

GB = 10**9
SYSTEM, BASE, LAST_LAYER = "bench-system", "bench-base", "bench-last"
# Parts of a tree: origin of the bytes, their share of the tree, the size of a file. Random bytes
# stand for compiled code, which shrinks little; lines of numbers for text.
MIX = (
    ("random", 0.30, 50_000_000),
    ("random", 0.20, 1_000_000),
    ("random", 0.10, 16_000),
    ("text", 0.20, 5_000_000),
    ("text", 0.16, 100_000),
    ("text", 0.04, 4_000),
)
SOURCES = {
    "random": "head -c {size} /dev/urandom",
    "text": "seq 1000000000 $((999999999 + {size} / 11))",
}


class Synthetic:
    """A project whose images begin with a small Debian and end with a layer that is edited."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        """Make the small Debian from the kept cache, which most likely has it."""
        kept = Project.kept(settings)
        kept.image(SYSTEM, ["base-debian"])
        settings.note("sifwright, the system that toys start from …")
        kept.build(image=SYSTEM, layout="flat")
        self.project = Project(settings, folder)
        header = {"Bootstrap": "localimage", "From": str(kept.sif("flat", SYSTEM))}
        self.project.layer(BASE, "true\n", {"bootstrap": header, "provides": ["base"]})
        self.last = self.project.layer(LAST_LAYER, "date >/edited\n")

    def small(self, number: int) -> str:
        """Add a layer of a few files; its name."""
        name = f"bench-small-{number}"
        self.project.layer(name, f"mkdir /small-{number}\nseq 1000 >/small-{number}/numbers\n")
        return name

    def tree(self, name: str, size: int) -> str:
        """Add a layer with a tree of that many bytes; its name."""
        self.project.layer(name, tree_script(f"/{name}", size))
        return name

    def image(self, name: str, layers: Sequence[str]) -> str:
        self.project.image(name, [BASE, *layers, LAST_LAYER])
        return name


def tree_script(folder: str, size: int) -> str:
    """Return a shell script that fills a folder with that many bytes."""
    return "".join(_files(f"{folder}/{number}", size, *kind) for number, kind in enumerate(MIX))


def _files(folder: str, size: int, kind: str, share: float, each: int) -> str:
    """Return shell for files of `each` bytes; split(1) makes thousands in one process."""
    source = SOURCES[kind].format(size=round(size * share))
    return f"mkdir -p {folder}\n{source} | split -a 6 -b {each} - {folder}/part-\n"
