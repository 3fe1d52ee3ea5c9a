"""A failed build: it leaves the old image and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from sifwright.system import files
from tests.conftest import DEFAULT_SIGNALS, run
from tests.waiting import LIMIT_SECONDS, wait_for

if TYPE_CHECKING:
    from tests.system.apptainer.toys import Toy

SLEEP = f"sleep 4242.{os.getpid()}"  # no other run's
FAILS = """echo the last thing said
deeper() {
  false  # line 5
}
deeper
"""


@pytest.fixture
def built(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Toy, str]:
    """Build a toy, and return the digest of its image; no other build has its temporary folder."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("APPTAINER_TMPDIR", str(tmp_path / "temporary"))
    toy.layer("hello", "echo one >/hello\n")
    toy.image("hello")
    assert toy.build("--quiet").returncode == 0
    return toy, files.sha256(toy.sif)


def _temporaries() -> set[str]:
    root = Path(os.environ["APPTAINER_TMPDIR"])
    return {path.name for path in root.glob(".sifwright-*")}


def _assert_untouched(built: tuple[Toy, str]) -> None:
    toy, digest = built
    assert files.sha256(toy.sif) == digest
    assert toy.leftovers() == []


def test_a_failing_layer_is_named_with_its_line(built: tuple[Toy, str]) -> None:
    toy, _ = built
    before = _temporaries()
    toy.layer("hello", FAILS)
    failed = toy.build()
    assert failed.returncode == 6
    assert "layer 'hello', install.sh:5: false (exit status 1)" in failed.stderr
    assert "| the last thing said" in failed.stderr
    assert str(toy.output / "build.log") in failed.stderr
    assert "Traceback" not in failed.stderr
    assert "failed" in failed.stdout
    assert "the last thing said" in (toy.output / "build.log").read_text()
    assert _temporaries() == before
    _assert_untouched(built)


def test_a_failing_test_keeps_the_image_out(built: tuple[Toy, str]) -> None:
    toy, _ = built
    toy.layer("hello", "echo two >/hello\n", test="echo it says $(cat /hello)\n[[ a == b ]]\n")
    failed = toy.build()
    assert failed.returncode == 7
    assert "layer 'hello', test.sh:4: [[ a == b ]] (exit status 1)" in failed.stderr
    assert "| it says two" in failed.stderr
    _assert_untouched(built)


def test_only_what_ended_the_build_is_blamed(built: tuple[Toy, str]) -> None:
    """Ignore commands that fail on purpose, and words of a layer that resemble our marks."""
    toy, _ = built
    harmless = "false &\nwait $! || true\nx=$(false; echo ok)\n[[ $x == ok ]]\n"
    spoofs = "echo 'sifwright: line x'\necho 'sifwright: failed y'\necho 'sifwright: begin'\n"
    toy.layer("before", harmless + spoofs)
    toy.layer("hello", harmless + "exit 5\n")
    toy.image("before", "hello")
    failed = toy.build()
    assert failed.returncode == 6
    assert "layer 'hello' (exit status 5)" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_two_builds_at_once_do_not_mix(toy: Toy, engine: str) -> None:
    option = {"type": "string", "description": "any text", "default": ""}
    header = {"options": {"word": option}}
    toy.layer("say", "sleep 1\necho $OPT_WORD >/said\n", header=header)
    toy.image("say")
    words = ["one", "two"]
    builds = []
    for word in words:
        command = [sys.executable, "-m", "sifwright", *toy.command("--set", f"say.word={word}")]
        builds.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    outputs = [build.communicate(timeout=LIMIT_SECONDS)[0] for build in builds]
    assert [build.returncode for build in builds] == [0, 0], outputs
    results = {}
    for sif in toy.output.glob("toy-*.sif"):
        inside = ["--containall", "--no-home", sif, "cat", "/said", "/opt/sifwright/plan.json"]
        word, plan = run([engine, "--quiet", "exec", *inside]).stdout.split("\n", 1)
        results[word] = json.loads(plan)["steps"][-1]["options"]["word"]["value"]
    assert results == {word: word for word in words}
    assert toy.leftovers() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_build_ends_all_it_started(
    built: tuple[Toy, str], number: signal.Signals
) -> None:
    toy, _ = built
    before = _temporaries()
    process = _start_slow_build(toy)
    process.send_signal(number)
    _, errors = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 130
    assert "stopped" in errors
    assert "Traceback" not in errors
    assert not _sleeps()
    assert _temporaries() == before
    _assert_untouched(built)


def test_a_killed_build_loses_nothing_and_the_next_reclaims(built: tuple[Toy, str]) -> None:
    toy, digest = built
    before = _temporaries()
    process = _start_slow_build(toy)
    sessions = {running.session for running in _running() if running.parent == str(process.pid)}
    sessions -= {str(os.getsid(process.pid))}
    names = {running.name for running in _running() if running.session in sessions}
    assert {"squashfuse_ll", "fuse-overlayfs"} <= names
    process.kill()
    process.communicate(timeout=LIMIT_SECONDS)
    assert files.sha256(toy.sif) == digest
    assert wait_for(
        lambda: not _sleeps() and not any(running.session in sessions for running in _running())
    )
    toy.layer("hello", "echo three >/hello\n")
    assert toy.build().returncode == 0
    assert toy.leftovers() == []
    assert _temporaries() == before


def _start_slow_build(toy: Toy) -> subprocess.Popen[str]:
    """Start a build and wait until its layer sleeps inside the container."""
    toy.layer("hello", f"{SLEEP}\n")
    command = [*DEFAULT_SIGNALS, sys.executable, "-m", "sifwright", *toy.command()]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert wait_for(lambda: _sleeps() or process.poll() is not None)
    assert process.poll() is None, process.stderr
    return process


class Running(NamedTuple):
    name: str
    command: str
    parent: str
    session: str


def _running() -> list[Running]:
    """Return all processes but zombies, as proc(5) shows them."""
    results = []
    for folder in Path("/proc").glob("[0-9]*"):
        # It may have ended by now, and its words may be no text.
        with suppress(OSError, UnicodeDecodeError):
            command = (folder / "cmdline").read_bytes().decode().replace("\0", " ").strip()
            name, _, fields = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            state, parent, _, session, *_ = fields.split()
            if state not in "ZX":
                results.append(Running(name, command, parent, session))
    return results


def _sleeps() -> bool:
    return any(running.command == SLEEP for running in _running())


def test_all_that_is_missing_is_said_first(toy: Toy) -> None:
    """Report all problems of the machine before a file is written."""
    option = {"type": "string", "description": "mirror", "default": "http://127.0.0.1:9/debian"}
    packages = {"what": "Debian packages", "option": "mirror", "url": "dists/x/Release"}
    downloads = [packages, {"what": "a package", "pip": "pip==0.0.4242"}]
    header = {"options": {"mirror": option}, "downloads": downloads, "disk_mb": 10**9}
    toy.layer("wants", "true\n", header={**header, "programs": ["no-such-program"]})
    toy.image("wants")
    failed = toy.build()
    assert failed.returncode == 5
    for text in (
        "'no-such-program' is missing; layer 'wants' needs it",
        *("GB are needed", "TMPDIR", "SIFWRIGHT_CACHE"),
        "Debian packages cannot be reached at http://127.0.0.1:9/debian/dists/x/Release",
        "--set wants.mirror=",
        "pip finds no wheel of pip==0.0.4242",
    ):
        assert text in failed.stderr
    assert not toy.output.exists()
