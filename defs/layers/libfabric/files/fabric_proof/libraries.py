"""Libraries on disk, as the loader and fi_info report them without LD_* in the environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from fabric_proof.finding import Finding, broken, proved

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["providers", "resolved", "same_libfabric"]

_COMPLAINTS = (
    "not found",
    "undefined symbol",
    "No such file",
    "cannot ",
    "error while",
    "not a dynamic",
)


def resolved(paths: Iterable[str]) -> Iterator[Finding]:
    """Check that each file finds all its libraries and symbols with an empty LD_LIBRARY_PATH."""
    for path in paths:
        lines = _ldd(path)
        bad = [line for line in lines if any(word in line for word in _COMPLAINTS)]
        # Without a library its symbols are missing, too: that says nothing more.
        bad = [line for line in bad if "not found" in line] or bad
        if bad:
            yield broken("c", f"{path}: {'; '.join(bad)}")
        else:
            yield proved("c", f"{path} finds its {len(lines)} libraries without LD_LIBRARY_PATH")


def same_libfabric(plugin: str, program: str) -> Iterator[Finding]:
    """Refuse a fi_info that uses another libfabric than the plugin."""
    mine, other = _find_library(plugin, "libfabric.so.1"), _find_library(program, "libfabric.so.1")
    if mine and mine != other:
        yield broken("e", f"{plugin} takes {mine}, but {program} {other or 'none'}")


def providers(program: str, wanted: str, release: str) -> Iterator[Finding]:
    """Check that fi_info lists a provider; without hardware, it lists those that are built in."""
    listed = _run([program, "-l"])
    names = [line[:-1] for line in listed if line.endswith(":") and not line.startswith(" ")]
    text = f"fi_info lists {', '.join(names) or 'nothing'}"
    if wanted in names:
        yield proved("e", text)
    else:
        yield broken("e", f"{text}, not {wanted}")
    version = _run([program, "--version"])
    if release and f"libfabric: {release}" not in version:
        yield broken("e", f"libfabric is not release {release}: {' '.join(version)}")


def _find_library(path: str, library: str) -> str:
    """Return the file that the loader gives a program or library for a name."""
    for line in _ldd(path):
        name, _, rest = line.partition(" => ")
        if name == library and rest.startswith("/"):
            return str(Path(rest.partition(" (")[0]).resolve())
    return ""


def _ldd(path: str) -> list[str]:
    return [line.strip() for line in _run(["ldd", "-r", path])]


def _run(command: list[str]) -> list[str]:
    """Return the lines that a program prints, or one that says why it does not run."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("LD_")}
    try:
        done = subprocess.run(
            command, env=clean, capture_output=True, check=False, encoding="utf-8"
        )
    except OSError as error:
        return [f"error while running {command[0]}: {error}"]
    return (done.stdout + done.stderr).splitlines()
