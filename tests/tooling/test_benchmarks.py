"""Results of the benchmarks from made-up runs; `make bench` proves that they run."""

import os
import subprocess
import sys
import zlib
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from edits import LAYERED, NOTHING, by_plain, waiting
from figures import Skipped
from plain import Plain
from project import Build, remove_older
from sampling import DiskSampler, MemorySampler
from storage import Storage
from synthetic import tree_script
from usage import Usage, resources

MB = 10**6


def usage(seconds: float, **others: float) -> Usage:
    none = Usage(seconds=seconds, tree=0, own=0, disk=0)
    return replace(none, **others)


def build(seconds: float, own: float = 0) -> Build:
    states, steps = {"last": "done"}, {"last": own + 1}
    return Build(usage=usage(seconds), states=states, steps=steps, own={"last": own})


def test_the_disk_of_a_run_is_its_worst_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Count two folders of one file system once; blocks have 4 KiB."""
    free = iter([1000, 900, 400, 700])

    def statvfs(_: object) -> SimpleNamespace:
        return SimpleNamespace(f_blocks=5000, f_bfree=next(free), f_frsize=4096)

    monkeypatch.setattr(os, "statvfs", statvfs)
    (tmp_path / "inside").mkdir()
    # So slow that it looks by itself never.
    with DiskSampler(period=60, folders=[tmp_path, tmp_path / "inside"]) as disk:
        for _ in range(3):
            disk.sample()
    assert disk.megabytes == pytest.approx(600 * 4096 / MB)


def test_limits_are_for_the_highest_peak_of_our_runs() -> None:
    ours = {"cold": [usage(1, own=40, tree=700)], "edit": [usage(1, own=60, tree=90)]}
    own, everything, _ = resources("row", ours, {"apptainer": [usage(1, own=999, tree=2000)]})
    assert (own.samples, own.reached, list(own.sides)) == ((60,), True, ["cold", "edit"])
    assert (everything.samples, everything.reached) == ((700,), False)
    assert everything.sides["apptainer"] == [2000]


def test_rows_are_compared_with_the_build_that_packs_alike() -> None:
    plains = {
        name: Plain(usage=usage(seconds), size=0, steps={})
        for name, seconds in (("zstd", 100), ("gzip", 200))
    }
    no_op, edit = by_plain("x", {NOTHING: [build(1), build(3)], LAYERED: [build(6)]}, plains)
    assert (no_op.samples, no_op.median, no_op.reached) == ((0.01, 0.03), 0.02, True)
    assert (edit.samples, edit.reached) == ((0.06,), False)


def test_the_run_of_the_edited_layer_is_not_ours() -> None:
    no_op, edit = waiting("x", {NOTHING: [build(1.5)], LAYERED: [build(5, 3.5)]}, "last")
    assert (no_op.samples, no_op.reached) == ((1.5,), False)
    assert (edit.samples, edit.reached) == ((1.5,), True)


@pytest.mark.all
def test_all_of_our_pythons_count_as_ours() -> None:
    """Count the Python that packs a layer as well, but no program of the engine."""
    words = ["-c", "import sys; print(flush=True); sys.stdin.read()"]
    result, own = MemorySampler(), []
    with ExitStack() as stack:
        for mark in ("-m", "x", "-m"):
            pipe = subprocess.PIPE
            command = [
                sys.executable,
                *words,
                mark,
                "sifwright.make_image.pack_layers.in_namespace",
            ]
            child = stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe))
            assert child.stdout
            assert child.stdout.readline()
            result.sample()
            own.append(result.own)
    # All three are of one size.
    assert own == pytest.approx([own[0], own[0], 2 * own[0]], rel=0.4)
    assert own[0] > 1
    assert result.tree > result.own


def test_a_synthetic_tree_has_its_size_and_shrinks_like_an_image(tmp_path: Path) -> None:
    """Make 60 of 100 bytes incompressible."""
    script = f"set -euo pipefail\n{tree_script('tree', 20 * MB)}"
    subprocess.run(["/bin/bash", "-c", script], check=True, cwd=tmp_path)
    files = [path.read_bytes() for path in (tmp_path / "tree").rglob("part-*")]
    size = sum(map(len, files))
    assert size == pytest.approx(20 * MB, rel=0.001)
    assert min(map(len, files)) < 20_000
    assert max(map(len, files)) > 5 * MB
    packed = sum(len(zlib.compress(data, 1)) for data in files)
    assert 0.6 < packed / size < 0.8


def test_without_buildah_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Skipped, match="apt install buildah"):
        Storage.open(tmp_path / "storage")


def test_only_the_image_that_stands_there_stays(tmp_path: Path) -> None:
    for name in ("one.sif", "two.sif", "record.json"):
        (tmp_path / name).write_text("")
    (tmp_path / "image.sif").symlink_to("two.sif")
    remove_older(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "image.sif",
        "record.json",
        "two.sif",
    ]
