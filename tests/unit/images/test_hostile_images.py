"""Images that were made to take all time or memory: they are refused by name, or told in moments.

Each is looked at by a process of its own with a limit of memory. None of these tests measures
speed: what was wrong took hours, or gigabytes.
"""

from __future__ import annotations

import resource
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.unit import hostile_images

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.all

_SECONDS, _MOST_BYTES, _MOST_KILOBYTES = 240, 3 << 30, 600_000
_LOOK = """
import sys
from sifwright.cli.main import main
status = main(["inspect", sys.argv[1], "--json"])
with open("/proc/self/status") as file:
    print([line.split()[1] for line in file if line.startswith("VmHWM")][0], file=sys.stderr)
sys.exit(status)
"""
REFUSED = {
    "a member of 2^62 bytes": "a layer is no tar file, or not all of one: it is cut off",
    "libraries of zeros in each layer": "its libraries have more than 256 MiB",
    "links with 1000 parents each": "take more than 256 MiB of memory",
    "links through links": "its links lead through more folders than an image can have",
    "whiteouts": "take more than 256 MiB of memory",
    "headers of headers": "it has more than 8 headers of one file",
    "variables that double": "its scripts set more variables than a program can start with",
    "a folder of zeros": "a name that cannot be one",
}


def _look(image: str) -> tuple[int, str]:
    """Return the status and the message of a look at an image; fail if it takes too much."""
    done = run(
        [sys.executable, "-c", _LOOK, image],
        timeout=_SECONDS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES)),
    )
    *errors, peak = done.stderr.splitlines() or ["nothing"]
    assert peak.isdecimal(), done.stderr[-2000:]
    assert int(peak) < _MOST_KILOBYTES
    return done.returncode, "\n".join(errors)


def _check(case: str, status: int, message: str) -> None:
    assert REFUSED.get(case, "") in message
    assert (status, "Copy or build the image again" in message) == (
        (2, True) if message else (0, False)
    )
    assert bool(message) == (case in REFUSED)


@pytest.mark.parametrize("case", hostile_images.LAYERS)
def test_layers(case: str, tmp_path: Path) -> None:
    hostile_images.write_layout(tmp_path / "x", [make() for make in hostile_images.LAYERS[case]])
    _check(case, *_look(f"oci:{tmp_path / 'x'}"))


@pytest.mark.parametrize("case", hostile_images.SIFS)
def test_sifs(case: str, tmp_path: Path) -> None:
    hostile_images.write_hostile_sif(tmp_path / "x.sif", case)
    _check(case, *_look(str(tmp_path / "x.sif")))
