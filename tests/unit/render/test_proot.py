"""The definition file for builds by proot: what such a build cannot do is not in it."""

import os
import re
from pathlib import Path

import pytest

from sifwright.catalog.model import Catalog
from sifwright.plan.resolve import resolve
from sifwright.render.build_files import package_text
from sifwright.render.definition import definition
from sifwright.render.proot import proot_definition
from tests.conftest import run
from tests.unit.conftest import program

MACHINE = {"debian-mirror": "http://mirror.example/debian"}
STEPS = "%post\n    # base-"


@pytest.mark.parametrize("site", ["local", "lumi", "leonardo", "slurm-generic"])
def test_only_the_start_differs(real: Catalog, site: str) -> None:
    plan = resolve(real, site, "pytorch", [])
    ours, usual = proot_definition(plan, MACHINE), definition(plan, MACHINE)
    assert ours[ours.index(STEPS) :] == usual[usual.index(STEPS) :]
    start = ours[: ours.index(STEPS)]
    assert "\n%setup" not in start
    assert "debootstrap" not in start.partition("\n%post")[0]
    assert "\nBootstrap: docker\n" in start
    assert "/mnt/machine" in start


def test_the_archive_of_an_image_without_lists(real: Catalog, tmp_path: Path) -> None:
    """Use the sources of apt, which images of Debian bring without lists of packages."""
    text = proot_definition(resolve(real, "local", "pytorch", []), {})
    makers = (text, package_text("render/templates/oci/make-root"))
    (tmp_path / "sources.list").write_text("deb http://archive.example/debian bookworm main\n")
    (tmp_path / "lists" / "partial").mkdir(parents=True)
    (tmp_path / "apt.conf").write_text(
        f'Dir::State::lists "{tmp_path}/lists";\nDir::Etc::sourcelist "{tmp_path}/sources.list";\n'
        'Dir::Etc::sourceparts "/nonexistent";\n'
    )
    program("apt-get")
    environment = os.environ | {"APT_CONFIG": str(tmp_path / "apt.conf")}
    for maker in makers:
        (command,) = set(re.findall(r"apt-get indextargets[^\n|]*", maker))
        done = run(["sh", "-c", command], env=environment)
        assert done.stdout.splitlines()[:1] == ["http://archive.example/debian/"], command
