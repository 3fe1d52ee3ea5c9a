"""`sifwright deliver`: the same tree as squashfs file, OCI image and EDF file."""

import json
import tomllib
from pathlib import Path

import pytest

from sifwright.images.sif import sif_file
from sifwright.system import files
from tests.conftest import run, sifwright
from tests.system.apptainer.toy_sif import toy_sif
from tests.system.apptainer.toys import succeeded
from tests.system.apptainer.trees import describe, unpack_stack

# Keys of CSCS's documentation (eth-cscs/cscs-docs, docs/software/container-engine/edf.md).
EDF_KEYS = {"base_environment", "image", "workdir", "entrypoint", "writable", "mounts"}
EDF_TABLES = {"env", "annotations", "devices"}


@pytest.fixture(params=[1, 2], ids=["flat", "layered"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Make the folder of an image at two sites, with its SIF."""
    for site, processor in {"alps": "arm64", "perlmutter": "amd64"}.items():
        image = tmp_path / "build" / site / "pytorch"
        image.mkdir(parents=True)
        toy_sif(image, ["gzip"] * request.param, processor).rename(image / "image.sif")
    return tmp_path / "build"


def deliver(folder: Path, *words: str) -> None:
    succeeded(sifwright("deliver", *words, "--output", str(folder)))


def test_a_squashfs_file_and_its_edf_file(folder: Path) -> None:
    deliver(folder, "alps", "--elsewhere")
    squashfs, image = (folder / "alps/pytorch" / name for name in ("pytorch.sqsh", "image.sif"))
    parts = sif_file.partitions(image)
    listed = run(["unsquashfs", "-l", "-d", "", squashfs]).stdout.split()
    assert [path for path in listed if path[-1:].isdigit()] == [
        f"/data/{n}" for n in range(len(parts))
    ]
    edf = tomllib.loads(squashfs.with_suffix(".toml").read_text())
    assert edf.keys() <= EDF_KEYS | EDF_TABLES
    assert edf["image"] == str(squashfs)
    assert "${SCRATCH}:${SCRATCH}" in edf["mounts"]
    if len(parts) == 1:
        assert sif_file.digest(image, parts[0]) == files.sha256(squashfs)


def test_all_forms_have_the_tree_of_the_sif(folder: Path, tmp_path: Path) -> None:
    """Deliver the archive twice: it has the same bytes."""
    deliver(folder, "perlmutter", "--as", "squashfs")
    image, trees = folder / "perlmutter/pytorch", [tmp_path / "squashfs", tmp_path / "oci"]
    archive, packed = image / "pytorch.oci.tar", []
    for _ in range(2):
        deliver(folder, "perlmutter")
        packed.append(archive.read_bytes())
    assert packed[0] == packed[1]
    assert run(["unsquashfs", "-dest", trees[0], image / "pytorch.sqsh"]).returncode == 0
    succeeded(run(["skopeo", "copy", f"oci-archive:{archive}", f"dir:{tmp_path}/copy"]))
    (packed_layer,) = json.loads((tmp_path / "copy/manifest.json").read_text())["layers"]
    layer = tmp_path / "copy" / str(packed_layer["digest"]).removeprefix("sha256:")
    trees[1].mkdir()
    assert run(["tar", "-xf", layer, "-C", trees[1]]).returncode == 0
    trees.append(unpack_stack(image / "image.sif", tmp_path / "stack"))
    first, *others = (describe(tree) for tree in trees)
    assert others == [first, first]
    # Compare the root folder, which `describe` leaves out.
    assert len({(tree.stat().st_mode, tree.stat().st_mtime) for tree in trees}) == 1
