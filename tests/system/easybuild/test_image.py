"""The image that a module takes, its messages, and silence of the engines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sifwright.install.easybuild_folder import DIRECTORY
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.easybuild.conftest import Installations

SCRIPT = """#!/bin/sh
echo "$WITH_CONDA"
[ -L /user-software/venv ] && echo linked
cat /etc/sifwright/site-environment
"""
# On a machine that withholds capabilities, root can only start a user namespace.
EXEC = f"exec {'--userns' if os.geteuid() == 0 else ''}"


def test_central_image_stands_in(installations: Installations) -> None:
    central = installations.folder / "central"
    central.mkdir()
    installations.module(central="$IMAGES/central")
    own = installations.root / "1.0/image.sif"
    own.unlink()
    spare = central / "image.sif"
    spare.touch()
    _, loaded = installations.session.states(
        "module load PyTorch", IMAGES=str(installations.folder)
    )
    assert loaded["SIF"] == loaded["SIFPYTORCH"] == str(spare)
    own.touch()
    _, loaded = installations.session.states(
        "module load PyTorch", IMAGES=str(installations.folder)
    )
    assert loaded["SIF"] == str(own)


@pytest.mark.parametrize("central", ["", "/nowhere", "$NOWHERE/images"])
def test_no_image_at_all(installations: Installations, central: str) -> None:
    installations.module(central=central)
    (installations.root / "1.0/image.sif").unlink()
    done = installations.session.run("state 0; module load PyTorch; state 1; echo ${SIF-unset}")
    assert done.stdout.strip() == "unset"
    text = " ".join(done.stderr.split())
    assert "There is no image" in text, text
    assert "image.sif is not there" in text
    assert (f"nor is {central}/image.sif" in text) == bool(central)
    assert "Install it again" in text
    # It can still be looked at, and unloaded where it was loaded before.
    assert "There is no image" not in installations.session.run("module help PyTorch").stderr


@pytest.mark.parametrize("closed", ["", "image.sif"])
def test_an_image_that_one_may_not_read(installations: Installations, closed: str) -> None:
    """Make a folder as modulefile --install does with umask 077; drop root's right to read."""
    installations.module()
    (installations.root / "1.0" / closed).chmod(0)
    rights = "=-dac_override,-dac_read_search"
    drop = f"setpriv --bounding-set{rights} --inh-caps{rights}" if os.geteuid() == 0 else ""
    load = f"{installations.session.tool.command} bash load PyTorch 2>&1"
    done = installations.session.run(f"{drop} {load}")
    (installations.root / "1.0" / closed).chmod(0o755)
    text = " ".join(done.stdout.split())
    assert f"You may not read the image {installations.root}/1.0/image.sif" in text, text
    assert f"chmod -R a+rX '{installations.root}/1.0'" in text


def test_help_and_whatis(installations: Installations) -> None:
    installations.module()
    shown = installations.session.run("module help PyTorch")
    assert "How to use it: $SIF and [this] {" in shown.stdout + shown.stderr
    shown = installations.session.run("module whatis PyTorch")
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
    installations: Installations, small_sif: Path, engine: str, preset: dict[str, str]
) -> None:
    installations.module(environment=(("WITH_CONDA", "true"),), site_environment=True)
    root = installations.root / "1.0"
    (root / "image.sif").unlink()
    (root / "image.sif").symlink_to(small_sif)
    (root / "runscripts/hello").write_text(SCRIPT)
    (root / "runscripts/hello").chmod(0o755)
    share = root / "share/sifwright" / DIRECTORY
    share.write_bytes((ROOT / "builder/sifwright/install" / DIRECTORY).read_bytes())
    (root / "share/sifwright/site-environment").write_text("[always]\n")
    done = installations.session.run(
        f'module load PyTorch && {engine} {EXEC} "$SIF" hello', **preset
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["true", "linked", "[always]"]
