"""Packages on top of the image: installed, packed into one file, unpacked; by the real programs."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.system.packages.installations import IMPORT, SQUASHED, UNPACKED, VENV, make_wheel

if TYPE_CHECKING:
    from tests.system.packages.installations import Installation

pytestmark = pytest.mark.image
SEEN = f"{VENV}/lib/python3.11/site-packages/toy.py"
HOME_PACKAGES = Path.home() / ".local" / "lib"


def inside(module: Installation, engine: str, *words: str) -> tuple[int, str, str]:
    """Return the output that a user of the module gets from `singularity exec $SIF …`."""
    done = run([engine, "exec", module.env["SIF"], *words], env=module.env)
    return done.returncode, done.stdout, done.stderr


def test_there_and_back(module: Installation, wheel: Path, engine: str) -> None:
    module.good("pytorch-pip", "install", wheel)
    unpacked = sorted(str(path) for path in module.software.rglob("*"))
    assert inside(module, engine, "python", "-c", IMPORT) == (0, f"1.0 {SEEN}\n", "")

    assert "packed" in module.run("make-squashfs").stderr
    assert module.current() == "user-software.squashfs"
    assert module.beside() == {
        "user-software",
        "user-software.current",
        "user-software.squashfs",
    }
    assert list(module.software.iterdir()) == []
    assert inside(module, engine, "python", "-c", IMPORT) == (0, f"1.0 {SEEN}\n", "")
    assert module.good("pytorch-python", "-c", f"import torch; {IMPORT}") == f"1.0 {SEEN}\n"
    assert module.run("make-squashfs").returncode == 0

    assert "unpacked" in module.run("unmake-squashfs").stderr
    assert module.current() == UNPACKED
    assert module.beside() == {"user-software", "user-software.current"}
    assert sorted(str(path) for path in module.software.rglob("*")) == unpacked
    assert "not squashed" in module.run("unmake-squashfs").stderr
    module.good("pytorch-pip", "install", make_wheel(wheel.parent, version="2.0"))
    assert inside(module, engine, "python", "-c", IMPORT) == (0, f"2.0 {SEEN}\n", "")


def test_nothing_installs_into_one_file(
    filled_module: Installation, wheel: Path, engine: str
) -> None:
    filled_module.good("make-squashfs")
    before = sorted(HOME_PACKAGES.rglob("*"))
    assert SQUASHED in filled_module.run("pytorch-pip", "install", wheel).stderr
    for words in (["pip"], ["pip3"], ["python", "-m", "pip"], ["conda-python-simple", "-m", "pip"]):
        status, _, errors = inside(filled_module, engine, *words, "install", str(wheel))
        assert (status, errors) == (1, f"pip: {SQUASHED}\n"), words
    assert sorted(HOME_PACKAGES.rglob("*")) == before


def test_nothing_installs_into_the_home_directory(
    module: Installation, wheel: Path, engine: str
) -> None:
    """Start without packages."""
    before = sorted(HOME_PACKAGES.rglob("*"))
    status, _, errors = inside(module, engine, "pip", "install", str(wheel))
    assert status == 1
    assert "pip: the image is read-only: use pytorch-pip" in errors
    assert inside(module, engine, "python", "-m", "pip", "install", str(wheel))[0] != 0
    assert sorted(HOME_PACKAGES.rglob("*")) == before


def test_pip_in_the_container_installs_into_the_folder(
    filled_module: Installation, wheel: Path, engine: str
) -> None:
    second = make_wheel(wheel.parent, "second")
    assert inside(filled_module, engine, "pip", "install", str(second))[0] == 0
    assert "second" in filled_module.good("pytorch-pip", "list", "--local")


@pytest.mark.parametrize("script", ["conda-python-simple", "conda-python-distributed"])
def test_run_scripts_see_them(filled_module: Installation, engine: str, script: str) -> None:
    assert inside(filled_module, engine, script, "-c", IMPORT) == (0, f"1.0 {SEEN}\n", "")
    without = filled_module.having(SIFWRIGHT_USER_SOFTWARE="none")
    assert "No module named 'toy'" in inside(without, engine, script, "-c", IMPORT)[2]


def test_torchruns_ranks_see_them(filled_module: Installation, tmp_path: Path) -> None:
    script = tmp_path / "rank.py"
    line = "f'{toy.version} {toy.__file__} {os.environ[\"RANK\"]}\\n'"
    script.write_text(f"import os, sys, toy\nsys.stdout.write({line})\n")
    done = filled_module.run("pytorch-torchrun", "--standalone", "--nproc-per-node=2", script)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"1.0 {SEEN} 0", f"1.0 {SEEN} 1"]


def test_commands_of_packages_run(filled_module: Installation, engine: str) -> None:
    assert inside(filled_module, engine, "toy-prefix") == (0, f"{VENV}\n", "")
    filled_module.good("make-squashfs")
    assert inside(filled_module, engine, "toy-prefix") == (0, f"{VENV}\n", "")


def test_torch_stays(filled: Installation) -> None:
    done = filled.run("pytorch-pip", "install", "torch==2.12.0")
    assert done.returncode != 0
    assert "torch==2.13.0+cpu" in done.stdout + done.stderr
    assert "outside environment" in filled.good("pytorch-pip", "uninstall", "-y", "torch")


def test_pip_lists_freezes_and_reads_requirements(filled: Installation, wheel: Path) -> None:
    second = make_wheel(wheel.parent, "second")
    requirements = wheel.parent / "requirements.txt"
    requirements.write_text(f"--find-links {second.parent}\nsecond==1.0\ntoy\n")
    filled.good("pytorch-pip", "install", "-r", requirements)
    local = filled.good("pytorch-pip", "freeze", "--local").splitlines()
    assert {line.split(" @ ")[0].split("==")[0] for line in local} == {"second", "toy"}
    filled.good("pytorch-pip", "uninstall", "-y", "second")
    assert "second" not in filled.good("pytorch-pip", "list")


def test_list_packages(filled: Installation, wheel: Path) -> None:
    """List a package of one's own, which replaces the image's."""
    filled.good("pytorch-pip", "install", make_wheel(wheel.parent, "tzdata", "1999.1"))
    results = {entry["name"]: entry for entry in json.loads(filled.good("list-packages", "--json"))}
    assert results["toy"] == {"name": "toy", "version": "1.0", "from": "own", "installer": "pip"}
    assert results["torch"]["from"] == "image"
    assert results["tzdata"]["version"] == "1999.1"
    assert results["tzdata"]["instead of"] != "1999.1"
    lines = filled.good("list-packages").splitlines()
    assert lines[0].split() == ["NAME", "VERSION", "FROM"]
    assert ["toy", "1.0", "own"] in [line.split() for line in lines]
    script = "import tzdata; print(tzdata.version)"
    assert filled.good("pytorch-python", "-c", script) == "1999.1\n"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o755), (0o077, 0o700)])
def test_the_umask_decides_who_reads(
    installation: Installation, wheel: Path, umask: int, mode: int
) -> None:
    installation.good("pytorch-pip", "install", wheel, umask=umask)
    for path in installation.software.rglob("*"):
        result = stat.S_IMODE(path.lstat().st_mode)
        if path.is_dir() and not path.is_symlink():
            assert result == mode, path
        elif not path.is_symlink():
            assert result in {mode, mode & 0o666}, path
    assert installation.good("make-squashfs", umask=umask) == ""
    # Else the containers of others would not start; what they see in it is as private as before.
    file = installation.software.with_name("user-software.squashfs")
    readers = stat.S_IMODE(installation.software.stat().st_mode) & 0o666
    assert stat.S_IMODE(file.stat().st_mode) == readers == 0o644


def test_packages_of_another_python_are_an_error(
    filled: Installation, module: Installation, engine: str
) -> None:
    """Update the image's Python: its name has the version, and the old name is gone."""
    link = filled.software / "venv" / "pytorch" / "bin" / "python3.11"
    link.unlink()
    link.symlink_to("/usr/bin/python3.10")
    done = filled.run("pytorch-python", "-c", "print('started')")
    assert (done.returncode, done.stdout) == (78, "")
    assert "were not made for this image's Python" in done.stderr
    assert inside(module, engine, "conda-python-simple", "-c", "print(1)")[0] == 78
    assert ["toy", "1.0", "own"] in [
        line.split() for line in filled.good("list-packages").splitlines()
    ]
    without = filled.having(SIFWRIGHT_USER_SOFTWARE="none")
    assert without.good("pytorch-python", "-c", "print('started')") == "started\n"


def test_nothing_to_squash(installation: Installation) -> None:
    done = installation.run("make-squashfs")
    assert done.returncode == 1
    assert "nothing to squash" in done.stderr
    assert installation.current() == UNPACKED


def test_pip_leaves_nothing_of_its_own(module: Installation, wheel: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    own = module.having(TMPDIR=str(temporary))
    own.good("pytorch-pip", "install", wheel)
    own.good("pytorch-pip", "list")
    assert own.run("pytorch-pip", "install", "./there-is-none.whl").returncode != 0
    # The image was compared, which is remembered for the next command.
    assert [path.name for path in temporary.iterdir()] == [f"sifwright-checked-{os.geteuid()}"]


@pytest.mark.parametrize("name", ["PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_pip_knows_this_machines_certificates(
    module: Installation, tmp_path: Path, name: str
) -> None:
    """Use other certificates than those of the image at the same path."""
    own = tmp_path / "authorities.pem"
    own.write_text("# the site's own\n")
    others = dict.fromkeys(("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), "")
    module = module.having(**others | {name: str(own)})
    code = "import os; print({open(os.environ[n]).read() for n in ('PIP_CERT', 'SSL_CERT_FILE')})"
    script = tmp_path / "editor"
    script.write_text(f'#!/bin/sh\nexec python3 -c "{code}"\n')
    script.chmod(0o755)
    shown = module.good("pytorch-pip", "config", "--user", "--editor", script, "edit")
    assert "the site's own" in shown
