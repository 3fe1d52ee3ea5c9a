"""What an image starts, as a script of its own."""

from __future__ import annotations

import shlex

from sifwright.catalog.model import ImageStart

# A file, because %runscript itself cannot hold every text (scripts.SECTION).
PATH = "/opt/sifwright/runscript"


def runscript(start: ImageStart) -> str:
    """Give the script that starts what `docker run` would, with the further words of a user."""
    if start.script:
        return start.script
    lines = ["#!/bin/sh"]
    if start.workdir:
        lines.append(f"cd {shlex.quote(start.workdir)} || exit")
    if start.cmd:
        lines.append(f'[ "$#" -gt 0 ] || set -- {shlex.join(start.cmd)}')
    entrypoint = f"{shlex.join(start.entrypoint)} " if start.entrypoint else ""
    return "\n".join([*lines, f'exec {entrypoint}"$@"', ""])
