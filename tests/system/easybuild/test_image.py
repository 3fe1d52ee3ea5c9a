"""Which image a module takes, what it says, and that engines have nothing to say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sifwright.install.easybuild_folder import DIRECTORY
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.easybuild.conftest import Place

SCRIPT = """#!/bin/sh
echo "$WITH_CONDA"
[ -L /user-software/venv ] && echo linked
cat /etc/sifwright/site-environment
"""
# As root on a machine that withholds capabilities, only a user namespace can be started.
EXEC = f"exec {'--userns' if os.geteuid() == 0 else ''}"


def test_central_image_stands_in(place: Place) -> None:
    central = place.folder / "central"
    central.mkdir()
    place.module(central="$IMAGES/central")
    own = place.root / "1.0/image.sif"
    own.unlink()
    spare = central / "image.sif"
    spare.touch()
    _, loaded = place.session.states("module load PyTorch", IMAGES=str(place.folder))
    assert loaded["SIF"] == loaded["SIFPYTORCH"] == str(spare)
    own.touch()
    _, loaded = place.session.states("module load PyTorch", IMAGES=str(place.folder))
    assert loaded["SIF"] == str(own)


@pytest.mark.parametrize("central", ["", "/nowhere", "$NOWHERE/images"])
def test_no_image_at_all(place: Place, central: str) -> None:
    place.module(central=central)
    (place.root / "1.0/image.sif").unlink()
    done = place.session.run("state 0; module load PyTorch; state 1; echo ${SIF-unset}")
    assert done.stdout.strip() == "unset"
    text = " ".join(done.stderr.split())
    assert "There is no image" in text, text
    assert "image.sif is not there" in text
    assert (f"nor is {central}/image.sif" in text) == bool(central)
    assert "Install it again" in text
    # It can still be looked at, and unloaded where it was loaded before.
    assert "There is no image" not in place.session.run("module help PyTorch").stderr


@pytest.mark.parametrize("closed", ["", "image.sif"])
def test_an_image_that_one_may_not_read(place: Place, closed: str) -> None:
    """As modulefile --install leaves a folder with umask 077. Root's right to read all is away."""
    place.module()
    (place.root / "1.0" / closed).chmod(0)
    rights = "=-dac_override,-dac_read_search"
    drop = f"setpriv --bounding-set{rights} --inh-caps{rights}" if os.geteuid() == 0 else ""
    load = f"{place.session.tool.command} bash load PyTorch 2>&1"
    done = place.session.run(f"{drop} {load}")
    (place.root / "1.0" / closed).chmod(0o755)
    text = " ".join(done.stdout.split())
    assert f"You may not read the image {place.root}/1.0/image.sif" in text, text
    assert f"chmod -R a+rX '{place.root}/1.0'" in text


def test_help_and_whatis(place: Place) -> None:
    place.module()
    shown = place.session.run("module help PyTorch")
    assert "How to use it: $SIF and [this] {" in shown.stdout + shown.stderr
    shown = place.session.run("module whatis PyTorch")
    assert "Description: PyTorch [for] $tests {" in shown.stdout + shown.stderr


@pytest.mark.parametrize(
    "preset",
    [
        {},
        {"APPTAINER_BINDPATH": "/opt"},
        {"SINGULARITY_BINDPATH": "/opt"},
        {"APPTAINER_BINDPATH": "/opt", "SINGULARITY_BINDPATH": "/srv"},
        {"APPTAINER_BIND": "/opt", "SINGULARITY_BIND": "/opt"},
    ],
    ids=["none", "apptainer", "singularity", "different", "bind"],
)
def test_engine_has_nothing_to_say(
    place: Place, small_sif: Path, engine: str, preset: dict[str, str]
) -> None:
    place.module(environment=(("WITH_CONDA", "true"),), site_environment=True)
    root = place.root / "1.0"
    (root / "image.sif").unlink()
    (root / "image.sif").symlink_to(small_sif)
    (root / "runscripts/hello").write_text(SCRIPT)
    (root / "runscripts/hello").chmod(0o755)
    share = root / "share/sifwright" / DIRECTORY
    share.write_bytes((ROOT / "builder/sifwright/install" / DIRECTORY).read_bytes())
    (root / "share/sifwright/site-environment").write_text("[always]\n")
    done = place.session.run(f'module load PyTorch && {engine} {EXEC} "$SIF" hello', **preset)
    assert done.stderr == ""
    assert done.stdout.split() == ["true", "linked", "[always]"]
