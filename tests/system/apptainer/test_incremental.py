"""Builds step by step: what runs and what is cached, and that the image is the same either way."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from sifwright.images.sif import sif_file as sif
from sifwright.make_image.cache.store import Store
from tests.conftest import run, sifwright
from tests.system.apptainer import trials
from tests.system.apptainer.machines import READ_ONLY
from tests.system.apptainer.toys import STRICT, succeeded

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.system.apptainer.toys import Toy

pytestmark = pytest.mark.build

LAYERS = ("one", "two", "three")


@pytest.fixture
def toy(tiny: Toy) -> Toy:
    """Make three layers: one makes files, one removes and replaces some, one adds to them."""
    tiny.layer("one", "mkdir -p /data/a; echo 1 >/data/a/x; echo 2 >/data/y; ln /data/y /data/z\n")
    tiny.layer("two", "rm -r /data/a; echo 3 >/data/a; rm /data/y; chown 33:33 /data/z\n")
    tiny.layer("three", "mkdir /data/b; echo 4 >>/data/z\n", test="[[ $(cat /data/a) == 3 ]]\n")
    tiny.image(*LAYERS)
    return tiny


def states(toy: Toy, *arguments: str) -> dict[str, str]:
    """Build; what became of each step."""
    done = succeeded(toy.build("--json", *arguments))
    steps = {"base-local", *LAYERS, "other"}
    return {step: state for step, state in trials.states(done).items() if step in steps}


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a folder for reading only")
def test_a_cache_that_can_only_be_read(toy: Toy, tmp_path: Path) -> None:
    """Read a cache as homes are on compute nodes of some sites."""
    assert set(states(toy).values()) == {"done"}
    toy.sif.unlink()

    def build() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sifwright", *toy.command("--json")]
        return run([*READ_ONLY, tmp_path / "cache", *command])

    built = succeeded(build())
    assert toy.execute("apptainer", "cat", "/data/a") == "3\n"
    assert "the step cache can only be read" in built.stdout
    toy.layer("three", "echo 6 >>/data/z\n")
    refused = build()
    assert refused.returncode == 5, refused.stderr
    assert "the step cache cannot be used: Read-only file system" in refused.stderr
    assert toy.execute("apptainer", "cat", "/data/a") == "3\n"


def test_only_what_follows_an_edit_runs_as_the_plan_says(toy: Toy) -> None:
    assert set(states(toy).values()) == {"done"}
    toy.layer("three", "mkdir /data/b; echo 5 >>/data/z\n")
    ran = {"base-local": "cached", "one": "cached", "two": "cached", "three": "done"}
    assert states(toy) == ran
    toy.layer("two", "rm -r /data/a; echo 3 >/data/a; rm /data/y\n")
    told = sifwright(*toy.words("plan")).stdout
    lines = {line.split()[0]: line for line in told.splitlines()[-5:-1]}
    assert " cached " in lines["one"]
    assert " will run " in lines["two"]
    assert "  install.sh: " in lines["two"]
    assert " -> " in lines["two"]
    assert lines["three"].endswith("  after two")
    assert states(toy) == ran | {"two": "done"}
    assert states(toy, "--force") == dict.fromkeys(ran, "cached")


def test_processes_that_a_step_leaves_end_with_it(engine: str, toy: Toy) -> None:
    """End such an agent of a package: it would write into the tree while it is packed."""
    daemon = "nohup bash -c 'while :; do date +%N >/data/now; sleep 0.01; done' >/dev/null 2>&1 &"
    toy.layer("one", f"mkdir /data\n{daemon}\nuntil [[ -s /data/now ]]; do sleep 0.1; done\n")
    toy.layer("two", "cat /data/now >/data/then\nsleep 0.5\ncmp /data/now /data/then\n")
    toy.image("one", "two")
    assert set(states(toy).values()) == {"done"}
    assert toy.execute(engine, "cat", "/data/now") == toy.execute(engine, "cat", "/data/then")


def test_layers_that_do_the_same_share_a_result_and_keep_their_names(toy: Toy) -> None:
    """Keep the names in the SIF and in the record, which tells whose test has passed."""
    script = (toy.folder / "defs/layers/two/install.sh").read_text().removeprefix(STRICT)
    states(toy)
    toy.layer("other", script, test="test -e /data\n")
    toy.image("one", "other")
    assert set(states(toy, "--layout", "layered").values()) == {"cached"}
    parts = sif.partitions(toy.sif)
    assert [part.name for part in parts[1:]] == ["one", "other", "metadata"]
    assert set(json.loads((toy.output / "record.json").read_text())["proofs"]) == {"other"}


def test_without_the_cache_everything_runs_and_nothing_is_kept(toy: Toy, tmp_path: Path) -> None:
    assert set(states(toy, "--no-cache").values()) == {"done"}
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("harm", ["flip", "head"])
def test_a_step_on_a_damaged_result_counts_for_nothing(toy: Toy, harm: str) -> None:
    """Repeat a step that ran while its input was checked and turned out damaged."""
    states(toy, "--layout", "layered")
    (base,) = (entry for entry in Store.open().entries() if entry.manifest["layer"] == "base-local")
    trials.spoil(base.file("layer.sqfs"), harm)
    toy.layer("three", "mkdir /data/b; echo 5 >>/data/z\n")
    result = states(toy, "--layout", "layered")
    assert (result["base-local"], result["three"]) == ("done", "done")
    assert Store.open().verify() == []
    assert toy.execute("apptainer", "tail", "-n1", "/data/z") == "5\n"


def test_a_shell_before_a_layer(toy: Toy) -> None:
    """Open it in the state before the layer, with its options, to look at a step that fails."""
    option = {"type": "string", "description": "any text", "default": "some words"}
    toy.layer("two", "echo $OPT_WORD; false\n", header={"options": {"word": option}})
    assert toy.build().returncode == 6
    words = toy.words("shell", "--quiet", "--before")
    script = (
        "cat /data/y; cat /first 2>/dev/null || echo $OPT_WORD; ls; touch /mine; bash install.sh"
    )
    done = sifwright(*words, "two", input=script)
    assert done.returncode == 6
    assert done.stdout.splitlines() == ["2", "some words", "install.sh", "some words"]
    assert "exit status 1\n    This is the exit status of the last command" in done.stderr
    done = sifwright(*words, "two", input="ls /mine /data")
    assert done.stdout.split() == ["/data:", "a", "y", "z"]
    assert "cannot access '/mine'" in done.stderr
    for layer, says in (("nobody", "has no layer 'nobody'"), ("base-local", "nothing before")):
        done = sifwright(*words, layer)
        assert done.returncode == 2
        assert says in done.stderr


def test_a_test_that_failed_is_run_again(toy: Toy) -> None:
    """Run it also if only tests of changed layers are wanted, and if only the test was changed."""
    states(toy)
    toy.layer("two", "rm -r /data/a; echo 4 >/data/a; rm /data/y\n", test="[[ -e /nowhere ]]\n")
    for _ in range(2):
        failed = toy.build("--tests", "untested")
        assert failed.returncode == 7
        assert "layer 'two', test.sh" in failed.stderr
    toy.layer("two", "rm -r /data/a; echo 3 >/data/a; rm /data/y\n", test="echo proved\n")
    tested = [line.split()[1] for line in toy.build("--tests", "untested").stdout.splitlines()]
    assert "two" in tested
    assert toy.build("--tests", "untested").stdout.startswith("up to date")
    assert toy.build().stdout.count("test three") == 1


def test_the_engines_variables_of_this_machine_do_not_reach_a_step(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep them from the cache as well: site modules set them."""
    for name in ("APPTAINERENV_CANARY", "SINGULARITYENV_CANARY", "APPTAINERENV_PREPEND_PATH"):
        monkeypatch.setenv(name, "/canary4711")
    monkeypatch.setenv("SINGULARITY_BIND", f"{tmp_path}:/canary")
    monkeypatch.setenv("APPTAINER_BIND", f"{tmp_path}:/canary")
    look = "[[ -z ${CANARY:-} && $PATH != */canary* && ! -e /canary ]]\n"
    toy.layer("three", look, test=look)
    assert set(states(toy).values()) == {"done"}


def test_folders_keep_the_modes_that_steps_gave_them(engine: str, toy: Toy) -> None:
    toy.layer("three", "chmod 2775 /opt; chmod 750 /opt/sifwright; chmod 711 /\n", test="true\n")
    states(toy, "--layout", "layered")
    output = toy.execute(engine, "stat", "--format", "%n %a", "/", "/opt", "/opt/sifwright")
    assert output.splitlines() == ["/ 711", "/opt 2775", "/opt/sifwright 750"]
