"""SIGKILL at many moments of a build: no image is lost, and the next build makes the right one."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from sifwright.store.store import Store
from tests.engine.trees import differences, unpack_stack

if TYPE_CHECKING:
    from pathlib import Path

    from tests.engine.toys import Toy

pytestmark = pytest.mark.build

slow = pytest.mark.slow
# How often, the layout, and the layer that is edited each time: all steps from there on run.
KILLS = [
    (12, "layered", "work"),
    (8, "flat", "base-local"),
    pytest.param((200, "layered", "work"), marks=slow),
    pytest.param((50, "flat", "base-local"), marks=slow),
]
# A step whose changes take a while to write and to pack.
INSTALL = """mkdir -p /data/inner
for i in 1 2 3; do seq 1 300000 >/data/inner/$i; done
rm -rf /data/inner; mkdir /data/inner
seq 1 200000 >/data/inner/numbers
echo {number} >/data/number
"""


@pytest.fixture
def toy(tiny: Toy) -> Toy:
    tiny.layer("first", "echo first >/first\n")
    tiny.image("first", "work")
    return tiny


def edit(toy: Toy, layer: str, number: int) -> None:
    toy.layer("work", INSTALL.format(number=number))
    with (toy.folder / "defs" / "layers" / layer / "install.sh").open("a") as file:
        file.write(f": {number}\n")


def start(toy: Toy) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "sifwright", *toy.command("--json")]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_while_it_works(toy: Toy, seconds: float) -> bool:
    """After a while, and so wherever it is then; whether it was still at work."""
    process = start(toy)
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    return process.returncode == -signal.SIGKILL


def kill_while_it_publishes(toy: Toy, seconds: float) -> bool:
    process = start(toy)
    assert process.stdout
    for line in process.stdout:
        if json.loads(line).get("step") == "publish":
            time.sleep(seconds)
            process.send_signal(signal.SIGKILL)
            break
    process.communicate()
    return process.returncode == -signal.SIGKILL


def number_in(engine: str, toy: Toy) -> int:
    """Of the image that stands there: whole, and its own."""
    return int(toy.execute(engine, "tail", "-n1", "/data/number"))


def choose(toy: Toy, layout: str) -> None:
    """Make a layout the site's default."""
    site = toy.folder / "defs" / "sites" / "local.yaml"
    document = json.loads(site.read_text())
    site.write_text(json.dumps({**document, "sif": {"layout": layout}}))


@pytest.mark.parametrize("disturbance", KILLS, ids=str)
def test_no_kill_loses_an_image(
    engine: str, toy: Toy, tmp_path: Path, disturbance: tuple[int, str, str]
) -> None:
    kills, layout, layer = disturbance
    choose(toy, layout)
    edit(toy, layer, -1)
    assert toy.build().returncode == 0
    edit(toy, layer, 0)
    since = time.monotonic()
    assert toy.build().returncode == 0
    whole = time.monotonic() - since
    chance = random.Random(4711)  # noqa: S311  # moments, not secrets
    before, killed = 0, [0, 0]
    for number in range(1, kills + 1):
        edit(toy, layer, number)
        if number % 2:
            killed[1] += kill_while_it_works(toy, chance.uniform(0, whole))
        else:
            killed[0] += kill_while_it_publishes(toy, chance.uniform(0, 0.02))
        found = number_in(engine, toy)
        assert found in {before, number}
        before = found
    assert min(killed) >= kills // 4, killed
    assert toy.build().returncode == 0
    assert number_in(engine, toy) == kills
    assert toy.leftovers() == []
    store = Store.open()
    assert store.verify() == []
    assert [path.name for path in (store.root / "entries").glob(".*")] == []
    again = unpack_stack(toy.sif, tmp_path / "disturbed")
    assert toy.build("--no-cache", "--force").returncode == 0
    assert differences(again, unpack_stack(toy.sif, tmp_path / "undisturbed")) == []
