"""Files of an image that no user needs: none.

Told from the tree itself: in a container, /tmp and others are the machine's.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

from sifwright.images.sif import sif_file as sif_image
from tests.conftest import run
from tests.system.apptainer.toys import Toy, succeeded

if TYPE_CHECKING:
    from pathlib import Path


# The contents of these folders. apt would make lists/partial again.
FOLDERS = {
    "/home": [],
    "/media": [],
    "/mnt": [],
    "/root": [".bashrc", ".profile"],
    "/srv": [],
    "/tmp": [],
    "/usr/local/src": [],
    "/usr/src": ["python3.11"],
    "/var/backups": [],
    "/var/cache/apt": ["archives"],
    "/var/cache/apt/archives": ["lock", "partial"],
    "/var/cache/apt/archives/partial": [],
    "/var/cache/debconf": ["config.dat", "passwords.dat", "templates.dat"],
    "/var/lib/apt/lists": [],
    "/var/log": ["apt"],
    "/var/log/apt": [],
    "/var/tmp": [],
}
# The distribution's own, which `python3 -m venv` installs pip from.
ENSUREPIP = "/usr/share/python-wheels/"
WASTE = re.compile(
    r"/\.sifwright(/|$)|\.(deb|whl|rej)$|/(pkg|srcpkg)cache\.bin$|/pip/(http|selfcheck|wheels)"
    r"|/\.cache(/|$)|/conda/pkgs/|/\.git(/|$)|/(pip|wheel)s?\.log$|\.dpkg-(new|tmp|old|dist)$"
)
BYTECODE = re.compile(r"/site-packages/(pip|setuptools|pkg_resources|wheel)/.*\.pyc$")


def paths(sif: Path) -> list[str]:
    """Return all paths of a flat SIF, sorted."""
    (part,) = sif_image.partitions(sif)
    listing = run(["unsquashfs", "-quiet", "-ls", "-dest", "tree", "-offset", part.offset, sif])
    assert listing.returncode == 0, listing.stderr
    return sorted(line.removeprefix("tree") for line in listing.stdout.splitlines())


def contents(tree: list[str], folder: str) -> list[str]:
    return [path.name for path in map(PurePosixPath, tree) if str(path.parent) == folder]


@pytest.mark.image
def test_nothing_of_the_build_is_in_the_image(image: Path) -> None:
    tree = paths(image)
    assert {folder: contents(tree, folder) for folder in FOLDERS} == FOLDERS
    results = [path for path in tree if WASTE.search(path) and not path.startswith(ENSUREPIP)]
    assert results == []
    assert [path for path in tree if BYTECODE.search(path)] == []
    # Everything that runs keeps its own: see test_image.
    assert "/opt/venv/lib/python3.11/site-packages/torch/__pycache__" in tree


# Files that a layer may leave if it runs apt and pip by itself.
LEAVES = """
mkdir -p /var/lib/apt/lists /var/cache/apt/archives/partial
touch /var/lib/apt/lists/mirror_Packages /var/cache/apt/{pkg,srcpkg}cache.bin
touch /var/cache/apt/archives/{lock,hello.deb}
mkdir -p /opt/conda/envs/pytorch/lib/python3.11/site-packages/setuptools/__pycache__
touch /opt/conda/envs/pytorch/lib/python3.11/site-packages/setuptools/__pycache__/x.pyc
cd /opt; mkdir -p venv/lib/python3.11/site-packages/{pip/_internal,torch,_distutils_hack}
cd venv/lib/python3.11/site-packages
for name in pip pip/_internal torch _distutils_hack; do
  mkdir $name/__pycache__; touch $name/code.py $name/__pycache__/code.cpython-311.pyc
done
"""


@pytest.mark.build
def test_each_step_takes_it_away(tiny: Toy) -> None:
    tiny.layer("leaves", LEAVES)
    tiny.image("leaves")
    succeeded(tiny.build())
    tree = paths(tiny.sif)
    assert contents(tree, "/var/lib/apt/lists") == []
    assert contents(tree, "/var/cache/apt") == ["archives"]
    assert contents(tree, "/var/cache/apt/archives") == ["lock", "partial"]
    packages = "/opt/venv/lib/python3.11/site-packages/"
    results = [path.removeprefix(packages) for path in tree if path.endswith((".py", ".pyc"))]
    assert not [path for path in results if "/conda/" in path]
    assert [path for path in results if not path.startswith("/")] == [
        "_distutils_hack/__pycache__/code.cpython-311.pyc",
        "_distutils_hack/code.py",
        "pip/_internal/code.py",
        "pip/code.py",
        "torch/__pycache__/code.cpython-311.pyc",
        "torch/code.py",
    ]
