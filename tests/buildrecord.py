"""A record of the real layers that tests build: noted by the build, claimed by marks.

`@pytest.mark.builds("horovod", by="make test", depth="ran on CPUs")` claims an image with this
layer. The program has built and tested the image, or an installation, once the test has passed. The
defaults are vendor cpu, base-debian and each variant and option in the header. `depth` is the
author's word: the test has to do this. Pytest checks each such test by the records here, and
tests/unit/plan/test_built.py compares the marks with the headers.
"""

import json
import platform
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.tiers import TARGETS, tier

__all__ = ["BUILDS", "Built", "check", "note"]

ROOT = Path(__file__).parents[1]


class Built(NamedTuple):
    """A layer, the GPUs and processor of its site, the first layer below it, and its options."""

    layer: str
    vendor: str
    processor: str
    base: str
    options: frozenset[tuple[str, str]]

    def is_of(self, other: "Built") -> bool:
        """Return whether the other is this one, perhaps with further options."""
        return self[:-1] == other[:-1] and self.options <= other.options


# Images and installations that the commands of this process have built, by their records.
BUILDS: set[Built] = set()
# Layers of tests that stand for others: the finished image of site local, to build on.
_STAND_INS = {"base-of-local": "base-debian"}
_NATIVE = re.compile(r"^[a-z ]+: (\S+/current) \(versions/", re.MULTILINE)
_IMAGE = re.compile(r"^[a-z ]+: (\S+\.sif) \([0-9]+ MB, plan ", re.MULTILINE)


def note(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    """Read the record of every image, and the plan of every installation, that a command names."""
    if done.returncode != 0 or not isinstance(done.stdout, str):
        return
    for match in _IMAGE.finditer(done.stdout):
        record = (folder / match[1]).parent / "record.json"
        if record.exists():  # not from a container with folders of its own
            BUILDS.update(_builds(json.loads(record.read_text())["plan"]))
    for match in _NATIVE.finditer(done.stdout):
        plan = Path(match[1], "sifwright/plan.json")
        if plan.exists():
            BUILDS.update(_builds(json.loads(plan.read_text())))


def _builds(plan: dict[str, Any]) -> Iterator[Built]:
    base = plan["steps"][0]["layer"]
    site = (plan["vendor"], plan["processor"], _STAND_INS.get(base, base))
    for step in plan["steps"]:
        options = frozenset((name, item["value"]) for name, item in step["options"].items())
        yield Built(step["layer"], *site, options)


def check(item: pytest.Item) -> None:
    """Compare what the marks of a test claim with what was noted.

    Marks of one case give no tier: a claim is about the case that is run most often.
    """
    case = {mark.name for mark in item.callspec.marks} if hasattr(item, "callspec") else set()
    marks = {mark.name for mark in item.iter_markers()} - case
    target = TARGETS[tier(item.nodeid, marks)]
    for mark in item.iter_markers("builds"):
        assert mark.kwargs["by"] == target, f"mark builds: by={target!r} is what runs this test"
        claimed = [claim for name in mark.args for claim in _claims(name, **mark.kwargs)]
        missing = [claim for claim in claimed if not any(map(claim.is_of, BUILDS))]
        assert not missing, f"nothing was built of {missing}: see tests/buildrecord.py"


def _claims(name: str, *, stand_in: bool = False, **words: Any) -> Iterator[Built]:
    """Yield what the header of a layer says of such a test, for processors of this kind."""
    header = yaml.safe_load((ROOT / "defs/layers" / name / "layer.yaml").read_text())
    assert header["built"] != "never", f"mark builds: layer '{name}' says 'built: never'"
    defaults = {"vendor": "cpu", "base": "base-debian", "processor": platform.machine()}
    wanted = {**defaults, "stand-in": stand_in, **words}
    for build in header["built"]:
        if wanted.items() <= {"stand-in": False, **build}.items():
            site = {key: build[key] for key in ("vendor", "processor", "base")}
            variant = {"variant": build["variant"]} if "variant" in build else {}
            options = frozenset({**variant, **build.get("options", {})}.items())
            yield Built(layer=name, options=options, **site)
