"""`sifwright shell`: what is seen before a step is what the step would see."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest

from sifwright.make_image.cache.store import Store
from sifwright.make_image.pack_layers.pack import SQUASHFS
from tests.conftest import sifwright
from tests.system.apptainer.toys import Toy, succeeded
from tests.system.apptainer.trials import spoil

pytestmark = pytest.mark.build


def shell(toy: Toy) -> list[str]:
    """Return the arguments that open a shell before layer three."""
    return toy.words("shell", "--before", "three")


def test_a_shell_is_what_the_step_would_run_in(tiny: Toy) -> None:
    """Unpack files with capabilities, which an overlay can neither remove nor change."""
    tiny.layer("one", "cp /usr/bin/true /capable; setcap cap_net_raw+ep /capable\n")
    tiny.layer("three", "rm /capable\n")
    tiny.image("one", "three")
    assert tiny.build().returncode == 0
    done = succeeded(sifwright(*shell(tiny), input="bash install.sh; ls /"))
    assert "capable" not in done.stdout.split()
    assert "layer 'three' runs without an overlay" in done.stderr + done.stdout


def test_a_shell_is_not_opened_on_damaged_results(tiny: Toy) -> None:
    tiny.layer("one", "seq 100000 >/one\n")
    tiny.layer("three", "true\n")
    tiny.image("one", "three")
    assert tiny.build("--layout", "layered").returncode == 0
    (first,) = (entry for entry in Store.open().entries() if entry.manifest["layer"] == "one")
    first.file(SQUASHFS).chmod(0o644)
    spoil(first.file(SQUASHFS), "flip")
    site = tiny.folder / "defs" / "sites" / "local.yaml"
    site.write_text(json.dumps({**json.loads(site.read_text()), "sif": {"layout": "layered"}}))
    done = succeeded(sifwright(*shell(tiny), "--json", input="true"))
    assert '"step": "one", "state": "done"' in done.stdout


def test_a_shell_on_a_terminal(tiny: Toy) -> None:
    tiny.layer("three", "true\n")
    tiny.image("three")
    terminal, child_end = pty.openpty()
    command = [sys.executable, "-m", "sifwright", *shell(tiny)]
    with subprocess.Popen(command, stdin=child_end, stdout=child_end, stderr=child_end) as process:
        os.close(child_end)
        os.write(terminal, b"echo $((6 * 7))-; exit 3\n")
        output = b""
        # At the end of the other side, Linux gives an error.
        with suppress(OSError):
            while some := os.read(terminal, 4096):
                output += some
    os.close(terminal)
    text = output.decode()
    assert process.returncode == 0, text
    assert "before layer 'three': bash install.sh runs it" in text
    assert "42-" in text
