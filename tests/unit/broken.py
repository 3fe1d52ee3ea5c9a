"""Ways to spoil the small project, one line each; the messages they give stand in errors/."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Change = Callable[[Path], None]
PLAN = ("plan", "here")
SITE, IMAGE, TOOL = "sites/here.yaml", "images/small.yaml", "layers/tool/layer.yaml"
BASE, EXTRA, INSTALL = "layers/base/layer.yaml", "layers/extra/layer.yaml", "layers/tool/install.sh"
VERSIONS = "versions.yaml"
SCRIPT = "#!/bin/bash\nset -euo pipefail\n"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A change to the good project, and the command that meets it."""

    changes: tuple[Change, ...] = ()
    command: tuple[str, ...] = PLAN


def write(file: str, content: str | bytes) -> Change:
    def change(defs: Path) -> None:
        data = content.encode() if isinstance(content, str) else content
        (defs / file).parent.mkdir(parents=True, exist_ok=True)
        (defs / file).write_bytes(data)

    return change


def replace(file: str, old: str, new: str) -> Change:
    def change(defs: Path) -> None:
        text = (defs / file).read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
        (defs / file).write_text(text.replace(old, new))

    return change


def append(file: str, text: str) -> Change:
    def change(defs: Path) -> None:
        (defs / file).write_text((defs / file).read_text() + text)

    return change


def remove(file: str) -> Change:
    return lambda defs: (defs / file).unlink()


def rename(file: str, new: str) -> Change:
    def change(defs: Path) -> None:
        (defs / file).rename(defs / new)

    return change


def link(file: str, target: str) -> Change:
    def change(defs: Path) -> None:
        path = defs / file
        if path.exists():
            path.rename(defs.parent / "moved-away")
        path.symlink_to(target)

    return change


def case(*changes: Change, command: tuple[str, ...] = PLAN) -> Case:
    return Case(changes=changes, command=command)


def setting(*values: str) -> Case:
    return Case(command=(*PLAN, *(word for value in values for word in ("--set", value))))


def layers(*names: str) -> Change:
    """Make the image of these layers."""
    items = "".join(f"  - layer: {name}\n" for name in names)
    return write(IMAGE, f"description: A small image\nlayers:\n{items}")
