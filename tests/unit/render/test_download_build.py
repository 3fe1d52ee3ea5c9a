"""download-build with the real pip: where it looks, and which plain release it takes."""

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import run
from tests.unit.fetching import PROGRAMS
from tests.unit.wheels import make_wheel

VARIANT = "cu130"


def add_wheel(folder: Path, version: str, build: str) -> None:
    """Put a wheel of toy into a folder; `build` is the version that its code names."""
    folder.mkdir(parents=True, exist_ok=True)
    more = {"toy/version.py": f"__version__ = '{build}'\n"}
    wheel = make_wheel("toy", version, more=more)
    (folder / f"toy-{version}-py3-none-any.whl").write_bytes(wheel)


def download(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run it in a folder where pip knows own/ only, and PyTorch's index is index/."""
    for name in (f"index/{VARIANT}", "none", "bin"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, module in (("python", ""), ("pip", "-m pip ")):
        (folder / "bin" / name).write_text(f'#!/bin/sh\nexec {sys.executable} {module}"$@"\n')
        (folder / "bin" / name).chmod(0o755)
    settings = {"PIP_INDEX_URL": f"file://{folder}/none", "PIP_FIND_LINKS": str(folder / "own")}
    path = f"{folder}/bin:{PROGRAMS}:{os.environ['PATH']}"
    env = os.environ | settings | {"PATH": path, "SIFWRIGHT_BUILD": str(folder / "build")}
    words = ["download-build", "wheel", "toy", "1.0", VARIANT, f"file://{folder}/index"]
    return run(words, cwd=folder, env=env)


def test_the_plain_release_of_the_build_is_taken(tmp_path: Path) -> None:
    add_wheel(tmp_path / "own", "1.0", f"1.0+{VARIANT}")
    done = download(tmp_path)
    assert (done.returncode, done.stdout) == (0, "toy==1.0\n"), done.stderr
    assert [path.name for path in (tmp_path / "wheel").iterdir()] == ["toy-1.0-py3-none-any.whl"]


def test_the_plain_release_of_another_build_is_refused(tmp_path: Path) -> None:
    add_wheel(tmp_path / "own", "1.0", "1.0+cu126")
    done = download(tmp_path)
    assert (done.returncode, done.stdout, [*tmp_path.glob("wheel/*")]) == (1, "", [])
    assert done.stderr.endswith("no: toy==1.0 is another build\n")


def test_the_named_build_comes_first(tmp_path: Path) -> None:
    add_wheel(tmp_path / "own", f"1.0+{VARIANT}", f"1.0+{VARIANT}")
    add_wheel(tmp_path / "own", "1.0", "1.0+cu126")
    assert download(tmp_path).stdout == f"toy==1.0+{VARIANT}\n"


def test_the_build_comes_from_the_index_of_its_variant(tmp_path: Path) -> None:
    add_wheel(tmp_path / "own", "1.0", "1.0+cu126")
    add_wheel(tmp_path / "index" / VARIANT / "toy", f"1.0+{VARIANT}", f"1.0+{VARIANT}")
    (wheel,) = (tmp_path / "index" / VARIANT / "toy").iterdir()
    page = f'<a href="{wheel.name}">{wheel.name}</a>'
    (wheel.parent / "index.html").write_text(page)
    done = download(tmp_path)
    assert done.stdout == f"toy==1.0+{VARIANT}\n", done.stderr
    assert [path.name for path in (tmp_path / "wheel").iterdir()] == [wheel.name]
