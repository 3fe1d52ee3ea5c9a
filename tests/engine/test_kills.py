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

KILLS = [12, pytest.param(200, marks=pytest.mark.slow)]
# A step whose changes take a while to write and to pack.
INSTALL = """mkdir -p /data/inner
for i in 1 2 3; do seq 1 300000 >/data/inner/$i; done
rm -rf /data/inner; mkdir /data/inner
seq 1 200000 >/data/inner/numbers
echo {number} >/data/number
"""


@pytest.fixture
def toy(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    toy.layer("first", "echo first >/first\n")
    toy.image("first", "work")
    return toy


def edit(toy: Toy, number: int) -> None:
    toy.layer("work", INSTALL.format(number=number))


def start(toy: Toy) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "sifwright", *toy.command("--json", "--layout", "layered")]
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


@pytest.mark.parametrize("kills", KILLS)
def test_no_kill_loses_an_image(engine: str, toy: Toy, tmp_path: Path, kills: int) -> None:
    edit(toy, -1)
    assert toy.build("--layout", "layered").returncode == 0
    edit(toy, 0)
    since = time.monotonic()
    assert toy.build("--layout", "layered").returncode == 0
    whole = time.monotonic() - since
    chance = random.Random(4711)  # noqa: S311  # moments, not secrets
    before, killed = 0, [0, 0]
    for number in range(1, kills + 1):
        edit(toy, number)
        if number % 2:
            killed[1] += kill_while_it_works(toy, chance.uniform(0, whole))
        else:
            killed[0] += kill_while_it_publishes(toy, chance.uniform(0, 0.02))
        found = number_in(engine, toy)
        assert found in {before, number}
        before = found
    assert min(killed) >= kills // 4, killed
    assert toy.build("--layout", "layered").returncode == 0
    assert number_in(engine, toy) == kills
    assert toy.leftovers() == []
    store = Store.open()
    assert store.verify() == []
    assert [path.name for path in (store.root / "entries").glob(".*")] == []
    again = unpack_stack(toy.sif, tmp_path / "disturbed")
    assert toy.build("--layout", "layered", "--no-cache", "--force").returncode == 0
    assert differences(again, unpack_stack(toy.sif, tmp_path / "undisturbed")) == []
