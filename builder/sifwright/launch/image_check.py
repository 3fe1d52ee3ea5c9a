"""The program by which a job compares its image on each node, before the ranks start.

The program itself is `runscripts/check-image`.
"""

from pathlib import Path


def check_program(run_scripts: Path) -> str:
    """Return the program that compares an image, without comments; '' if the project has none."""
    try:
        lines = (run_scripts / "check-image").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))
