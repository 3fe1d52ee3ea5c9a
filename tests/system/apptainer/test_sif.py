"""SIFs of ours and the real engine: the same bytes as its own tools write, and all its commands."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.images.sif import layout, sif_file, write_sif
from sifwright.images.sif.format import LAUNCH, NO_TIME
from sifwright.images.sif.write_sif import Contents, Partition
from tests.conftest import run
from tests.system.apptainer.sifs import keys, layer, system
from tests.system.apptainer.toys import succeeded

if TYPE_CHECKING:
    from pathlib import Path

DEFINITION = b"Bootstrap: scratch\n\n%post\n    echo \xc3\xa4\n"
LABELS = {"org.example": "a label", "other": "two"}
METADATA = {"data": {"attributes": {"labels": LABELS, "deffile": DEFINITION.decode()}}}
TREE = {
    ".singularity.d/labels.json": json.dumps({"of": "the tree"}),
    ".singularity.d/Singularity": "Bootstrap: in the tree\n",
    "says": "one",
    "goes": "with the third",
    "stays": "from the first",
}


@pytest.fixture(scope="module")
def contents(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Contents[Partition]:
    """Make a system and three layers; the third changes and hides files of the first."""
    folder = tmp_path_factory.mktemp(f"for-{engine.rpartition('/')[2]}")
    parts = [
        system(folder),
        layer(folder / "first", TREE),
        layer(folder / "second", {"says": "two", "folder/file": "x"}),
        layer(folder / "third", {"says": "three"}, removed=("goes", "folder")),
    ]
    return Contents(
        partitions=parts,
        definition=DEFINITION,
        metadata=json.dumps(METADATA).encode(),
        arch="amd64" if os.uname().machine == "x86_64" else "arm64",
    )


@pytest.fixture(scope="module")
def sif(contents: Contents[Partition], tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("sif") / "layered image.sif"
    write_sif.write(target, contents)
    return target


def _run(*command: object) -> str:
    return succeeded(run(command)).stdout


def _execute(engine: str, sif: Path, script: str) -> list[str]:
    flags = ["--userns", "--containall", "--no-home"]
    return _run(engine, "--quiet", "exec", *flags, sif, "/bin/sh", "-c", script).split()


def _normalised(sif: Path) -> bytes:
    """Return the file without its times, and with the line that `sif new` leaves out.

    By offset, so that nothing but these fields goes through code of ours.
    """
    data = bytearray(sif.read_bytes())
    times = struct.pack("<qq", NO_TIME, NO_TIME)
    data[:32] = b"#!/usr/bin/env run-singularity\n\0"
    data[48:80] = bytes(16) + times
    for index in range(4096, 4096 + 48 * 585, 585):
        if data[index + 4]:
            data[index + 41 : index + 57] = times
    return bytes(data)


def test_bytes_are_those_of_the_engines_own_tools(
    engine: str, contents: Contents[Partition], sif: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.sif"
    add = [engine, "sif", "add", "--groupid", "1"]
    (tmp_path / "def").write_bytes(contents.definition)
    (tmp_path / "json").write_bytes(contents.metadata or b"")
    _run(engine, "sif", "new", other)
    _run(*add, "--datatype", "1", other, tmp_path / "def")
    _run(*add, "--datatype", "6", "--filename", "inspect-metadata.json", other, tmp_path / "json")
    arch = {"amd64": "2", "arm64": "4"}[contents.arch]
    for partition in contents.partitions:
        kind = ["--parttype", "2" if partition.is_system else "4"]
        kind += ["--partfs", "1", "--partarch", arch]
        _run(*add, "--datatype", "4", *kind, "--filename", partition.name, other, partition.path)
    assert _normalised(other) == sif.read_bytes()


def test_it_runs_as_the_stack_of_its_layers_and_is_inspected(engine: str, sif: Path) -> None:
    assert _execute(engine, sif, "cat /says; echo; cat /stays; ls -d /goes /folder || true") == [
        *("three", "from", "the", "first")
    ]
    assert _execute(engine, sif, "ls -a /")[:4] == [".", "..", ".singularity.d", "bin"]
    assert _run(engine, "inspect", "--deffile", sif).strip() == DEFINITION.decode().strip()
    labels = _run(engine, "inspect", "--labels", sif).splitlines()
    assert labels == [f"{name}: {value}" for name, value in LABELS.items()]


def test_more_objects_than_usual_run(
    engine: str, contents: Contents[Partition], tmp_path: Path
) -> None:
    """Run the most layers that we allow, more than the 48 objects of an ordinary SIF."""
    many = [
        layer(tmp_path / f"layer-{number}", {f"of-{number}": str(number), "says": str(number)})
        for number in range(layout.MAXIMUM_OVERLAYS)
    ]
    parts = [contents.partitions[0], *many]
    write_sif.write(tmp_path / "x.sif", replace(contents, partitions=parts))
    assert _execute(engine, tmp_path / "x.sif", "cat /of-0 /of-31 /says") == ["03163"]
    _sign(engine, tmp_path / "x.sif", keys(tmp_path))


def test_it_is_inspected_without_metadata(
    engine: str, contents: Contents[Partition], tmp_path: Path
) -> None:
    """Let the engine look into the container, through all of its layers."""
    write_sif.write(tmp_path / "x.sif", replace(contents, metadata=None))
    deffile = _run(engine, "inspect", "--deffile", tmp_path / "x.sif")
    assert deffile.strip() == DEFINITION.decode().strip()
    labels = _run(engine, "inspect", "--labels", tmp_path / "x.sif")
    assert labels.split() == ["of:", "the", "tree"]


def _sign(engine: str, sif: Path, pair: tuple[Path, Path]) -> list[object]:
    """Sign an image; return the command that verifies it."""
    private, public = pair
    _run(engine, "sign", "--key", private, sif)
    verify = [engine, "verify", "--key", public, sif]
    _run(*verify)
    return verify


def test_it_is_signed_and_every_part_is_covered(
    engine: str, contents: Contents[Partition], tmp_path: Path
) -> None:
    sif = tmp_path / "x.sif"
    write_sif.write(sif, contents)
    verify = _sign(engine, sif, keys(tmp_path))
    good = sif.read_bytes()
    signed = sif_file.read(sif).descriptors[:-1]
    assert len(signed) == 6
    for at in (descriptor.offset + descriptor.size // 2 for descriptor in signed):
        sif.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        assert run(verify).returncode != 0, at
    sif.write_bytes(good)
    _run(*verify)
    names = [descriptor.name for descriptor in sif_file.partitions(sif)]
    assert names == ["system", "first", "second", "third"]
    assert _execute(engine, sif, "cat /says") == ["three"]


def test_signatures_do_not_depend_on_the_time(
    engine: str, contents: Contents[Partition], tmp_path: Path
) -> None:
    result, pair = set(), keys(tmp_path)
    for folder in (tmp_path / "one", tmp_path / "other"):
        folder.mkdir()
        write_sif.write(folder / "x.sif", contents)
        _sign(engine, folder / "x.sif", pair)
        result.add(hashlib.sha256((folder / "x.sif").read_bytes()).hexdigest())
        time.sleep(1.1)
    assert len(result) == 1


def test_a_sif_of_the_engine_is_read(
    engine: str, contents: Contents[Partition], tmp_path: Path
) -> None:
    """Read the output of `apptainer build` from a SIF: its system partition alone, packed again."""
    write_sif.write(tmp_path / "x.sif", replace(contents, partitions=contents.partitions[:1]))
    fakeroot = [] if os.geteuid() else ["--fakeroot"]
    _run(engine, "build", *fakeroot, tmp_path / "built.sif", tmp_path / "x.sif")
    image = sif_file.read(tmp_path / "built.sif")
    assert image.header.launch == LAUNCH
    assert image.partitions == image.descriptors[-1:]
    (tmp_path / "built.sqfs").unlink(missing_ok=True)
    sif_file.extract(image.path, image.partitions[0], tmp_path / "built.sqfs")
    assert "usr/bin/bash" in _run("unsquashfs", "-l", tmp_path / "built.sqfs")


def test_objects_beyond_4_gb_are_where_the_engine_finds_them(
    engine: str, contents: Contents[Partition], tmp_path: Path
) -> None:
    sizes = (5 << 30, 4096, 6 << 30, 4096)
    parts = [
        layout.partition(size, f"part-{number}", contents.arch, is_system=number == 0)
        for number, size in enumerate(sizes)
    ]
    plan = layout.layout([layout.definition(0), *parts], contents.arch)
    (tmp_path / "x.sif").write_bytes(plan.head)
    os.truncate(tmp_path / "x.sif", plan.descriptors[-1].end)
    listing = _run(engine, "sif", "list", tmp_path / "x.sif")
    assert sif_file.read(tmp_path / "x.sif").descriptors == plan.descriptors
    for descriptor in plan.descriptors:
        assert f"|{descriptor.offset}-{descriptor.end} " in listing
