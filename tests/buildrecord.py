"""What the tests build of the real layers: noted as it happens, claimed by marks.

`@pytest.mark.builds("horovod", by="make test")` says that there is an image with that layer once
the test has passed, built and tested by the program. Each such test is held to it here, and
tests/unit/plan/test_built.py compares the marks with `built` in the headers of the layers.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.tiers import TARGETS, tier

if TYPE_CHECKING:
    import subprocess

    import pytest

__all__ = ["LAYERS", "check", "note"]

# The layers of the images that commands of this process have reported, by their records.
LAYERS: set[str] = set()
_NATIVE = re.compile(r"^[a-z ]+: (\S+/current) \(plan ", re.MULTILINE)
_IMAGE = re.compile(r"^[a-z ]+: (\S+\.sif) \([0-9]+ MB, plan ", re.MULTILINE)


def note(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    """Read the record of every image, and the plan of every installation, that a command names."""
    if done.returncode != 0 or not isinstance(done.stdout, str):
        return
    for found in _IMAGE.finditer(done.stdout):
        record = (folder / found[1]).parent / "record.json"
        document = json.loads(record.read_text())
        LAYERS.update(step["layer"] for step in document["plan"]["steps"])
    for found in _NATIVE.finditer(done.stdout):
        plan = json.loads(Path(found[1], "sifwright/plan.json").read_text())
        LAYERS.update(step["layer"] for step in plan["steps"])


def check(item: pytest.Item) -> None:
    """Compare what the marks of a test claim with what was noted.

    Marks of one case do not count: a claim is about the case that is run most often.
    """
    case = {mark.name for mark in item.callspec.marks} if hasattr(item, "callspec") else set()
    marks = {mark.name for mark in item.iter_markers()} - case
    target = TARGETS[tier(item.nodeid, marks)]
    for mark in item.iter_markers("builds"):
        assert mark.kwargs == {"by": target}, f"mark builds: by={target!r} is what runs this test"
        missing = set(mark.args) - LAYERS
        assert not missing, f"no image was built with {sorted(missing)}: see tests/buildrecord.py"
